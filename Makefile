# Every target sets up .venv first; nothing else is needed beforehand than Python 3.11+, make and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BENCH_STAMP := $(VENV)/.installed-bench

.PHONY: setup demo test check bench slow fuzz format clean
.DEFAULT_GOAL := setup

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/python -m compileall -q cli.py corpora indexer search  # a first query should not wait for that
	touch $@

$(BENCH_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,bench]'
	touch $@

demo: setup
	$(BIN)/twindex demo

test: setup
	$(BIN)/python -m pytest

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest --cov --cov-report=term

slow: setup
	$(BIN)/python -m pytest -m slow

# Damaged indexes and odd queries, for FUZZ_SECONDS: nothing may happen but an answer or one of our errors.
FUZZ_SECONDS ?= 60
fuzz: setup
	$(BIN)/python tests/indexer/faults/fuzzing.py --seconds $(FUZZ_SECONDS)

bench: $(BENCH_STAMP)
	$(BIN)/python -m benchmarks.run

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) demo-index build *.egg-info
