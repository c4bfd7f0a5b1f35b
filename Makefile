# Everything happens in .venv, made from pyproject.toml; only Python 3.11 to 3.13 and make are needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CHECK ?= --subject reference --profile quick

.PHONY: check test mutate weaken mutate-generated lint types bench wheel clean

# Check the six invariants and the laws beside them on the reference store, generated and on real text.
check: $(VENV)/.installed
	$(BIN)/overflow check $(CHECK)

test: $(VENV)/.installed-test
	$(BIN)/pytest -n auto --dist worksteal

# Break the reference in every named way; exactly the named laws must notice. The power matrix is build/power.html.
mutate: $(VENV)/.installed
	mkdir -p build
	$(BIN)/overflow mutate --html build/power.html --junit build/mutate.xml --json build/mutate.json

# Take one assertion after another out of the laws; the gate, which runs before, must complain of each loss.
weaken: mutate
	$(BIN)/python mutation/weaken.py build/mutate.json

# Every change that mutmut can make in the reference; takes hours, goes on where it was stopped, keeps its results.
mutate-generated: $(VENV)/.installed-test
	$(BIN)/overflow mutate --generated

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-test
	$(BIN)/mypy

# Build the wheel, install it in an empty environment outside the checkout, and check a subject from there.
wheel: $(VENV)/.installed-test
	set -e; place=$$(mktemp -d); trap 'rm -rf "$$place"' EXIT; \
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir "$$place" .; \
	$(PYTHON) -m venv "$$place/venv"; \
	"$$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$$place"/overflow_tree-*.whl; \
	cd "$$place"; venv/bin/overflow check --profile quick --invariant 1 --invariant 4 --corpus none

bench: $(VENV)/.installed-test
	$(BIN)/python bench/linear_cost.py
	$(BIN)/python bench/store_latency.py
	$(BIN)/python bench/counting_speed.py

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable .
	touch $@

$(VENV)/.installed-test: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[test]'
	touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
