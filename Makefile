# The commands of a checkout. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

VENV ?= .venv
BIN := $(VENV)/bin
PIP := PYTHONUNBUFFERED=1 $(BIN)/python -m pip install --progress-bar off \
  --disable-pip-version-check --retries 10 --timeout 120
# Shows of pip's messages a line for each package, as soon as pip begins to get it.
STEPS := | awk '/^Collecting / {print "  " $$2} /^Installing / {print "  installing " NF - 3 " packages"} {fflush()}'
# The linter, the type checker, and the packages whose types it reads.
LINT := 'ruff>=0.14' 'mypy>=1.18' 'filelock>=4.0,<5' 'msgspec>=0.19' 'numpy>=1.26' 'rich>=13.8' 'typer>=0.19'
# With `peers` added, the tests that compare with PyTorch's models run too.
TEST_EXTRAS ?= data,dev,evaluation,hub,hub-models,plots,text,transfer

# Without bytecode, each `import tensorflow` takes half a minute.
unexport PYTHONDONTWRITEBYTECODE
# With an arena for each thread glibc keeps more of what the tests have freed.
test fuzz: export MALLOC_ARENA_MAX ?= 2

.PHONY: help
help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

.PHONY: demo
demo: $(VENV)/.demo ## Install into .venv, compare sentences with the bundled model, draw heatmap.png
	$(BIN)/use-st5 similarity --file examples/sentences.txt --heatmap heatmap.png

# One process for each core, but at most two: each takes up to 2 GB (with --end-to-end and all extras
# 4 GB), and imports TensorFlow itself. PYTEST_ARGS='--maxprocesses 8' allows more, PYTEST_ARGS='-n 0'
# uses only one. One process runs all tests of a file, because they share the models that they export;
# tests/conftest.py says which files come first.
PROCESSES := -n auto --maxprocesses 2 --dist loadfile --no-loadscope-reorder

.PHONY: test
test: $(VENV)/.test ## Install the test packages into .venv and run the tests in two processes
	$(BIN)/python -m pytest $(PROCESSES) $(PYTEST_ARGS)

FUZZ_SECONDS ?= 3600

.PHONY: fuzz
fuzz: $(VENV)/.test ## Test with odd strings, damaged files and killed commands for an hour
	$(BIN)/python -m tests.fuzz.run $(FUZZ_SECONDS)

.PHONY: lint
lint: $(VENV)/.lint ## Check the style of the code, its format and its types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

.PHONY: fix
fix: $(VENV)/.lint ## Repair what the linter can repair, and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: benchmark
benchmark: $(VENV)/.test ## Measure the speed and the memory of the bundled model
	$(BIN)/python benchmarks/footprint.py
	$(BIN)/python -m benchmarks.engines use_dan_en --out $(VENV)/engines.json

.PHONY: site
site: $(VENV)/.site ## Build the documentation site into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict

.PHONY: wheel
wheel: $(VENV)/.python ## Build the wheel with the bundled models into dist/
	rm -rf .build
	$(BIN)/python -m pip wheel --quiet --retries 10 --no-deps --wheel-dir dist .

.PHONY: clean
clean: ## Remove .venv and everything built
	rm -rf $(VENV) .build dist site *.egg-info .mypy_cache .pytest_cache .ruff_cache heatmap.png

# Runs each candidate: the stub of a version manager may exist but fail.
$(VENV)/.python:
	@for candidate in $${PYTHON:-python3.13 python3.12 python3.11 python3 python}; do \
	  if "$$candidate" -c 'import sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' \
	      2>/dev/null; then \
	    echo "Making $(VENV) with $$("$$candidate" --version)"; \
	    "$$candidate" -m venv $(VENV); touch $@; exit 0; \
	  fi; \
	done; \
	echo "Expected Python 3.11, 3.12 or 3.13 with the module venv on the PATH and found none." \
	  "Install one, or name it: make demo PYTHON=/path/to/python3.12" >&2; \
	exit 1

$(VENV)/.demo: $(VENV)/.python setup.py pyproject.toml
	@echo "Installing use_st5 with TensorFlow into $(VENV) (minutes, once)"
	$(PIP) --editable '.[plots]' $(STEPS)
	@touch $@

$(VENV)/.test: $(VENV)/.python setup.py pyproject.toml
	@echo "Installing use_st5 with all that its tests need into $(VENV) (minutes, once)"
	$(PIP) --editable '.[$(TEST_EXTRAS)]' $(STEPS)
	@touch $@ $(VENV)/.demo

$(VENV)/.site: $(VENV)/.python setup.py
	$(PIP) --editable '.[docs]' $(STEPS)
	@touch $@ $(VENV)/.demo

$(VENV)/.lint: $(VENV)/.python Makefile
	$(PIP) $(LINT) $(STEPS)
	@touch $@
