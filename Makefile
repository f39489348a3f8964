# Each target makes .venv and installs what it needs; a stamp keeps a second run from installing again.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test lint bench errata figures clean
.DEFAULT_GOAL := help

help:  ## what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/.plain  ## train on patients' data privately, print what that promises to whom, write the report
	$(BIN)/bayesdp demo

test: $(VENV)/.test  ## the whole test suite, on two cores
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(VENV)/.lint  ## format, style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/.plain  ## ratios against dp-accounting, Opacus, JAX-Privacy, NumPyro and BlackJAX, measured side by side in one run
	$(BIN)/python benchmarks

errata: $(VENV)/.plain  ## write docs/errata.md anew from the code that computes it
	$(BIN)/python -m bayesdp.experiments.errata.page docs/errata.md

figures: $(VENV)/.test  ## reproduce the papers' figures into results/
	for name in bdp-fig1 bdp-fig2 bdp-fig3 bdp-fig4 sgld-stepsize sgld-svhn; do $(BIN)/bayesdp reproduce $$name --out results || exit 1; done

clean:  ## remove what the targets made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis bayesdp-demo*

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.plain: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e . && touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[test]' && touch $@ $(VENV)/.plain

$(VENV)/.lint: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[test,lint]' && touch $@ $(VENV)/.test $(VENV)/.plain
