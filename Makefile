# One entry point for people and machines. `make` alone lists the targets.
VENV    := .venv
BIN     := $(VENV)/bin
STAMP   := $(VENV)/.installed
PYTHON  ?= python3
COMPILE := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 \
           --generate-hashes --no-emit-index-url --no-header --quiet

.PHONY: help setup demo test check bench crash simulate fmt clean lock

help:
	@echo "make setup   install everything into $(VENV)"
	@echo "make demo    watch a council of agents decide, offline"
	@echo "make test    all checks and all tests"
	@echo "make check   lint, format, types, import contracts"
	@echo "make fmt     format and fix what can be fixed"
	@echo "make bench   measure throughput and latency"
	@echo "make crash   the long crash test: 200 kills"
	@echo "make simulate  the long simulation: 500 years of schedules"
	@echo "make lock    choose dependency versions anew"
	@echo "make clean   remove what was built"

setup: $(STAMP)

$(STAMP): requirements-dev.txt pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps --editable .
	@touch $(STAMP)

demo: $(STAMP)
	@$(BIN)/moot demo

test: check
	$(BIN)/python -m pytest -n 2 --dist loadgroup

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fmt: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	$(BIN)/python -m bench

crash: $(STAMP)
	MOOT_CRASH_KILLS=200 MOOT_CRASH_COUNCIL_KILLS=100 MOOT_CRASH_DELIVERY_KILLS=100 $(BIN)/python -m pytest tests/crash --timeout 3600

simulate: $(STAMP)
	MOOT_LONG=1 $(BIN)/python -m pytest -n 2 tests/simulation

lock: $(STAMP)
	$(COMPILE) --upgrade -o requirements.txt
	$(COMPILE) --upgrade --group dev -o requirements-dev.txt

clean:
	rm -rf $(VENV) dist demo .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
