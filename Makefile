# Each target makes .venv and installs what it needs; a stamp keeps a second run from installing again.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH := .venv-torch
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo site pictures dist test test-fast test-torch check-estimators lint bench plans adversarial lattice preparation front-door crash audit errata figures clean
# Elsewhere a test has one device and is compiled sooner, see tests/conftest.py.
ON_TWO_DEVICES := tests/mechanism/test_devices.py tests/mechanism/test_step.py tests/integration/test_whole_step.py \
	tests/mechanism/test_lengths.py
.DEFAULT_GOAL := help

help:  ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: $(VENV)/.plain  ## train on patients' data privately, print what that promises to whom, write the report
	$(BIN)/bayesdp demo

site: $(VENV)/.docs  ## the documentation as build/site/index.html, which opens without a server; a warning is an error
	$(BIN)/mkdocs build --strict --quiet

pictures: $(VENV)/.docs  ## draw the pictures of docs/concepts anew
	$(BIN)/python docs/_site/pictures.py

test: $(VENV)/.test  ## the whole test suite, on two cores
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations 25
	XLA_FLAGS=--xla_force_host_platform_device_count=2 $(BIN)/python -m pytest $(ON_TWO_DEVICES)

test-fast: $(VENV)/.test  ## for daily work: no simulations, no experiments, no pages that are executed
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not simulation" --ignore tests/experiments

test-torch: $(TORCH)/.test  ## the bridge to Opacus and PyTorch, in an environment of its own
	$(TORCH)/bin/python -m pytest --rootdir tests_torch -c /dev/null -q -p no:cacheprovider tests_torch

check-estimators: $(VENV)/.test  ## scikit-learn's check_estimator with the real learners (minutes; the suite has a quick one)
	$(BIN)/python benchmarks/check_estimators.py

dist: $(VENV)/.plain  ## build sdist and wheel, and try both in clean environments of every Python at hand
	$(PIP) build && rm -rf dist && $(BIN)/python -m build --outdir dist .
	$(BIN)/python benchmarks/clean_installs.py dist

lint: $(VENV)/.lint  ## format, style, types and the direction of imports
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(VENV)/.plain  ## ratios against dp-accounting, Opacus, JAX-Privacy, NumPyro and BlackJAX, measured side by side in one run
	$(BIN)/python benchmarks

plans: $(VENV)/.plain  ## judge the plans that `train` takes on validation records of public sets, and write the table anew
	$(BIN)/python benchmarks/plans.py

adversarial: $(VENV)/.plain  ## search for records that move a clipped sum by more than the clip norm (none may)
	$(BIN)/python benchmarks/adversarial_norms.py

lattice: $(VENV)/.plain  ## what noise on a lattice costs beside float noise, for two networks
	$(BIN)/python benchmarks/lattice.py

preparation: $(VENV)/.test  ## what it costs in accuracy to pay for ranges and levels, by number of records and ε
	$(BIN)/python benchmarks/preparation.py results/preparation.csv

front-door: $(VENV)/.test  ## what `train` gives on a dozen tables with no option but ε: now, before, and beside diffprivlib
	$(BIN)/python benchmarks/front_door.py results/front-door.csv 10

crash: $(VENV)/.plain  ## kill runs at 200 random moments, flip 2,000 bits of their files, and look (nothing may be short, trusted or lost)
	$(BIN)/python benchmarks/crashes.py
	$(BIN)/python benchmarks/bit_flips.py

audit: $(VENV)/.plain  ## lower bounds on ε where it is known, 100 times each (none may be too high more often than it says)
	$(BIN)/python benchmarks/audit.py

errata: $(VENV)/.plain  ## write docs/errata.md anew from the code that computes it
	$(BIN)/python -m bayesdp.experiments.errata.page docs/errata.md

figures: $(VENV)/.test  ## reproduce the papers' figures into results/
	for name in bdp-fig1 bdp-fig2 bdp-fig3 bdp-fig4 sgld-stepsize sgld-svhn; do $(BIN)/bayesdp reproduce $$name --out results || exit 1; done

clean:  ## remove what the targets made
	rm -rf $(VENV) $(TORCH) .pytest_cache .mypy_cache .ruff_cache .hypothesis bayesdp-demo*

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.plain: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e . && touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[test]' && touch $@ $(VENV)/.plain

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[docs]' && touch $@ $(VENV)/.plain

$(VENV)/.lint: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[test,lint]' && touch $@ $(VENV)/.test $(VENV)/.plain

# torch 2.13.0 is the CPU build, which newer ones need not be.
$(TORCH)/.test: pyproject.toml
	$(PYTHON) -m venv $(TORCH)
	$(TORCH)/bin/python -m pip install --quiet --disable-pip-version-check torch==2.13.0 opacus==1.6.0 pytest -e . && touch $@
