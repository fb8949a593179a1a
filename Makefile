PYTHON ?= python3
BIN := .venv/bin
# Releases that the tests have passed with; a development matter, so not in pyproject.toml.
INSTALL := -m pip install --quiet --constraint constraints.txt
TESTS ?= tests

.PHONY: demo test test-all test-machines coverage wheel release-check sanitize lint format bench docs clean

demo: .venv/.library
	$(BIN)/python examples/japanese_vowels.py

test: .venv/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" $(TESTS)

test-all: .venv/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal $(TESTS)

test-machines: .venv/.dev
	$(BIN)/python tests/machines.py

# Lines of the package that no fast test runs; build/coverage shows them in the source. All tests must run 90 %.
coverage: .venv/.dev
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow" --cov --cov-report=term --cov-report=html \
	    $(if $(filter tests,$(TESTS)),--cov-fail-under=90) $(TESTS)

# Build a wheel, and try it in an empty environment that finds no compiler.
wheel:
	rm -rf dist build/wheel
	$(PYTHON) -m pip wheel --quiet --no-deps --wheel-dir dist .
	$(PYTHON) -m venv build/wheel
	PATH=$(CURDIR)/build/wheel/bin build/wheel/bin/python $(INSTALL) dist/*.whl
	cd build/wheel && PATH=$(CURDIR)/build/wheel/bin bin/python -I ../../tests/smoke.py

# All that can be checked before a tag: wheel and sdist, what PyPI will say, version = CHANGELOG = tag.
release-check: .venv/.release wheel
	$(BIN)/python -m build --sdist --outdir dist .
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python tests/release.py dist

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

.venv/.library: pyproject.toml constraints.txt $(KERNELS)
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python $(INSTALL) --editable .
	touch $@

# One marker file per extra, so that a target installs what it needs and no more.
.venv/.%: pyproject.toml constraints.txt $(KERNELS)
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python $(INSTALL) --editable '.[$*]'
	touch $@

clean:
	rm -rf .venv build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
