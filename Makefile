PYTHON ?= python3
BIN := .venv/bin
TESTS ?= tests

.PHONY: demo test test-all test-machines lint format bench docs clean

demo: .venv/.library
	$(BIN)/python examples/japanese_vowels.py

test: .venv/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" $(TESTS)

test-all: .venv/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal $(TESTS)

test-machines: .venv/.dev
	$(BIN)/python tests/machines.py

lint: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: .venv/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/.bench
	$(BIN)/python -m benchmarks run

docs: .venv/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

.venv/.library: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

# One marker file per extra, so that a target installs what it needs and no more.
.venv/.%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	touch $@

clean:
	rm -rf .venv build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
