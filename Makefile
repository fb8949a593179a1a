PYTHON ?= python3
BIN := .venv/bin
TESTS ?= tests

.PHONY: demo test test-all test-machines wheel sanitize lint format bench docs clean

demo: .venv/.library
	$(BIN)/python examples/japanese_vowels.py

test: .venv/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" $(TESTS)

test-all: .venv/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal $(TESTS)

test-machines: .venv/.dev
	$(BIN)/python tests/machines.py

# Build a wheel, and try it in an empty environment that finds no compiler.
wheel:
	rm -rf dist build/wheel
	$(PYTHON) -m pip wheel --quiet --no-deps --wheel-dir dist .
	$(PYTHON) -m venv build/wheel
	PATH=$(CURDIR)/build/wheel/bin build/wheel/bin/python -m pip install --quiet dist/*.whl
	cd build/wheel && PATH=$(CURDIR)/build/wheel/bin bin/python -I ../../tests/smoke.py

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
	$(BIN)/python -m docs_build.gallery
	PYTHONPATH=. NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

sanitize:
	csrc/check/sanitize

# What the kernels are built from: an installation older than any of these is made again.
KERNELS := CMakeLists.txt $(wildcard csrc/*.h csrc/*.cpp)

.venv/.library: pyproject.toml $(KERNELS)
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

# One marker file per extra, so that a target installs what it needs and no more.
.venv/.%: pyproject.toml $(KERNELS)
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[$*]'
	touch $@

clean:
	rm -rf .venv build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
