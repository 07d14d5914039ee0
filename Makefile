# Everything about setting up, running and checking longreach. `make help` lists the targets.
# Needs Python 3.11 or newer with pip. Nothing is installed outside this folder,
# except numactl and chromium, and only when make runs as root (see tools/install_system_needs.sh).

MAKEFLAGS += --no-builtin-rules --no-print-directory
SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
ENGINE := .engine
BIN := $(VENV)/bin
INTO_VENV := $(BIN)/python -m tools.uv pip install --python $(BIN)/python --no-deps

# The stamp of an environment is written last: an interrupted installation is started again, never used.
DEV_READY := $(VENV)/.ready
ENGINE_PACKAGES := $(ENGINE)/.ready
ENGINE_READY := $(ENGINE)/.prepared

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: run
run: $(DEV_READY) ## plan the worked example, then plan, start, prove and stop a tiny model on the real engine
	@$(MAKE) engine || echo "continuing without the engine: what needs it is left out"
	$(BIN)/python -m longreach demo --engine $(ENGINE)

.PHONY: test
test: lint engine system ## run every test, those on the real engine included
	$(BIN)/python -m pytest -m "not gpu"

.PHONY: check
check: lint ## format, lint, types, import contracts, and the tests that need no engine
	$(BIN)/python -m pytest -m "not vllm and not gpu"

.PHONY: lint
lint: $(DEV_READY)
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy src tests tools
	$(BIN)/lint-imports

.PHONY: format
format: $(DEV_READY) ## bring the code into its format, and fix what ruff can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: generate
generate: $(DEV_READY) ## write the generated examples, screens and explain pages anew
	$(BIN)/python -m tests.examples.test_examples >/dev/null
	$(BIN)/python -m tests.report.test_plan_text
	$(BIN)/python -m tests.report.test_bench_text
	$(BIN)/python -m tests.rules.write_pages
	@$(MAKE) accuracy

.PHONY: accuracy
accuracy: $(DEV_READY) ## compare with every published figure, and write docs/accuracy.md anew
	$(BIN)/python -m tests.accuracy.write

.PHONY: registry
registry: $(DEV_READY) ## read what vLLM releases accept: make registry RELEASES=0.34.0; without it, all that are known
	$(BIN)/python -m tools.registry $(or $(RELEASES),--all)

.PHONY: bench
bench: $(DEV_READY) ## time the commands themselves
	@for benchmark in benchmarks/*.py; do echo "$$benchmark"; $(BIN)/python "$$benchmark" || exit 1; done

.PHONY: dev
dev: $(DEV_READY) ## create .venv: longreach, its dependencies, the tools

.PHONY: engine
engine: $(ENGINE_READY) ## create .engine: vLLM's CPU build

.PHONY: system
system:
	@sh tools/install_system_needs.sh numactl chromium

.PHONY: python
python:
	@test -n "$(PYTHON)" || { echo "error: no Python found; install Python 3.11 or name one: make PYTHON=..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: $(PYTHON) is older than Python 3.11" >&2; \
	  echo "  why: $$("$(PYTHON)" --version 2>&1)" >&2; \
	  echo "  fix: install Python 3.11 and run make again, or name one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@"$(PYTHON)" -m pip --version >/dev/null || { echo "  fix: install pip for $(PYTHON), for instance apt-get install python3-pip" >&2; exit 1; }

$(DEV_READY): requirements/dev.lock pyproject.toml | python
	"$(PYTHON)" -m venv --clear --without-pip $(VENV)
	"$(PYTHON)" -m pip --python $(BIN)/python install -qq --no-deps $$(grep -e '^pip==' -e '^uv==' requirements/dev.lock)
	$(INTO_VENV) --compile-bytecode --requirement requirements/dev.lock
	$(INTO_VENV) --no-build-isolation --editable .
	@$(BIN)/python -m pip check
	@touch $@

$(ENGINE_PACKAGES): requirements/engine.lock | $(DEV_READY)
	@$(BIN)/python -m tools.install_engine $(ENGINE)
	@touch $@

$(ENGINE_READY): $(ENGINE_PACKAGES) pyproject.toml src/longreach/_version.py tools/prepare_engine.py $(wildcard tools/engine_support/*) | $(DEV_READY)
	@$(BIN)/python -m tools.prepare_engine $(ENGINE)/bin/python
	@touch $@

.PHONY: lock-engine
lock-engine: $(DEV_READY) ## pin requirements/engine.in anew
	$(BIN)/python -m tools.install_engine --lock

.PHONY: clean
clean: ## remove the environments and every cache
	rm -rf $(VENV) $(ENGINE) .cache .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage build dist
	find src tests tools -name __pycache__ -prune -exec rm -rf {} +
