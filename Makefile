# Everything here needs only python3 (3.11 or newer), make and the package registry that pip is set up to use.
# The environment is made on first use and again whenever pyproject.toml or constraints.txt changes.

PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help venv solve test test-slow lint clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv: $(READY) ## the environment in .venv, with the pinned versions

$(READY): pyproject.toml constraints.txt
	@echo "Setting up $(VENV) (a minute or two the first time)"
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python -m pip install -qq --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

solve: $(READY) ## solve Burgers' equation
	@$(VENV)/bin/dsgnar solve burgers

test: $(READY) ## the tests, without the slow ones
	@OPENBLAS_NUM_THREADS=1 $(VENV)/bin/python -m pytest -q -n 2 --dist loadfile # many small matrices: threads would only wait for each other

test-slow: $(READY) ## the slow tests only
	@$(VENV)/bin/python -m pytest -q -m slow || [ $$? -eq 5 ] # 5: there are none

lint: $(READY) ## ruff and pyright
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/pyright src

clean: ## remove the environment, caches and build output
	@rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
