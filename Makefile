# One entry point for people and machines. `make` alone lists the targets.
VENV    := .venv
BIN     := $(VENV)/bin
READY   := $(VENV)/.ready
STAMP   := $(VENV)/.installed
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check
PYTHON  ?= python3
COMPILE := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 \
           --generate-hashes --no-emit-index-url --no-header --quiet

.PHONY: help setup demo test check shape bench crash simulate storm explore fmt clean lock

help:
	@echo "make setup   install everything into $(VENV), the tools for tests, too"
	@echo "make demo    watch a council of agents decide, offline"
	@echo "make test    all checks and all tests"
	@echo "make check   lint, format, types, import contracts"
	@echo "make shape   how readable the tree is, in figures with their bars"
	@echo "make fmt     format and fix what can be fixed"
	@echo "make bench   measure throughput and latency"
	@echo "make crash   the long crash test: 200 kills"
	@echo "make simulate  the long simulation: 500 years of schedules"
	@echo "make storm   one thing sent 1,000 times at once; many more chances for schedules"
	@echo "make explore   the properties on new examples, ten times as many"
	@echo "make lock    choose dependency versions anew"
	@echo "make clean   remove what was built"

setup: $(STAMP)

# A stamp is written last: what was broken off is done again, a venv without its pip from nothing.
define MAKE_VENV
@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
endef

$(READY): requirements.txt pyproject.toml
	@echo "Installing Moot into $(VENV); the first time this takes about a minute."
	$(MAKE_VENV)
	$(INSTALL) --require-hashes -r requirements.txt
	$(INSTALL) --no-build-isolation --no-deps --editable .
	@touch $(READY)

$(STAMP): requirements-dev.txt pyproject.toml
	@echo "Installing Moot and its tools into $(VENV); the first time this takes a minute or two."
	$(MAKE_VENV)
	$(INSTALL) --require-hashes -r requirements-dev.txt
	$(INSTALL) --no-build-isolation --no-deps --editable .
	@touch $(READY) $(STAMP)

demo: $(READY)
	@$(BIN)/moot demo

test: check
	$(BIN)/python -m pytest -n 2 --dist loadgroup

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

shape: $(STAMP)
	@$(BIN)/python -m tools.shape

fmt: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP)
	$(BIN)/python -m bench

crash: $(STAMP)
	MOOT_CRASH_KILLS=200 MOOT_CRASH_COUNCIL_KILLS=100 MOOT_CRASH_SCHEDULE_KILLS=100 MOOT_CRASH_DELIVERY_KILLS=100 $(BIN)/python -m pytest tests/crash --timeout 3600

simulate: $(STAMP)
	MOOT_LONG=1 $(BIN)/python -m pytest -n 2 tests/simulation

storm: $(STAMP)
	MOOT_LONG=1 $(BIN)/python -m pytest -n 2 tests/api/triggers/test_duplicates.py tests/triggers/inbound/test_deliveries.py tests/triggers/schedules/test_scheduler_properties.py

explore: $(STAMP)
	MOOT_EXPLORE=1 $(BIN)/python -m pytest -n 2 -m hypothesis

lock: $(STAMP)
	$(COMPILE) --upgrade --group build -o requirements.txt
	$(COMPILE) --upgrade --group dev -o requirements-dev.txt

clean:
	rm -rf $(VENV) dist demo .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
