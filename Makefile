# jaxcoop: every target sets up what it needs; a machine with Python 3.11 and make is enough.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2

.PHONY: demo test test-all lint bench clean

demo: $(VENV)/.run
	$(BIN)/jaxcoop paper dpbench

test: $(VENV)/.dev
	$(BIN)/pytest -m "not slow and not peers" -n $(WORKERS) --dist loadfile

test-all: $(VENV)/.dev
	$(BIN)/pytest -n $(WORKERS) --dist loadfile

lint: $(VENV)/.dev
	$(BIN)/ruff check jaxcoop envs agents benchmarks tests
	$(BIN)/ruff format --check jaxcoop envs agents benchmarks tests
	$(BIN)/lint-imports
	$(BIN)/pyright

bench: $(VENV)/.run
	$(BIN)/jaxcoop bench throughput

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[dev]"
	touch $@ $(VENV)/.run

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
