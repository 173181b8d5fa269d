# `make help` lists the targets. Everything happens in a virtual environment in this folder:
# .venv, or .venv-NAME when an interpreter is chosen, as in `make test PYTHON=python3.12`.

ifdef PYTHON
VENV ?= .venv-$(notdir $(PYTHON))
else
VENV ?= .venv
endif
BIN := $(VENV)/bin
CHECKED := src tests tools $(wildcard benchmarks examples)
# Much of the time is spent waiting for processes and servers: two at once, each with its own.
PARALLEL ?= -n 2 --dist worksteal
ARGS ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /|/' | while IFS='|' read -r name text; do \
		printf '  make %-8s %s\n' "$$name" "$$text"; done
	@echo
	@echo '  PYTHON=python3.12 chooses the interpreter; ARGS="..." is passed on to demo, test and bench'

.PHONY: demo
demo: $(VENV)/.user ## see it work: several instances, a server of its own, one killed (ARGS="--seconds 10")
	@$(BIN)/anarchon demo $(ARGS)

.PHONY: test
test: servers ## run the tests against real servers (ARGS="-k lease")
	@$(BIN)/python -m pytest $(PARALLEL) $(ARGS)

.PHONY: mutants
mutants: servers ## turn each rule of the Lua scripts round; some test must notice (ARGS="claim")
	@$(BIN)/python -m tools.mutate_scripts $(ARGS)

.PHONY: servers
servers: $(VENV)/.dev ## get the servers that the tests use, into a cache folder
	@$(BIN)/python -m tools.servers fetch

.PHONY: lint
lint: $(VENV)/.dev ## check style and formatting
	@$(BIN)/ruff check $(CHECKED)
	@$(BIN)/ruff format --check $(CHECKED)

.PHONY: types
types: $(VENV)/.dev ## check types with mypy and pyright, both strict; every public type is known
	@$(BIN)/mypy
	@PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --pythonpath $(BIN)/python
	@PATH="$(abspath $(BIN)):$$PATH" PYRIGHT_PYTHON_IGNORE_WARNINGS=1 \
		$(BIN)/pyright --verifytypes anarchon --ignoreexternal >$(VENV)/types.log || \
		{ cat $(VENV)/types.log; exit 1; }

.PHONY: format
format: $(VENV)/.dev ## rewrite the sources as `make lint` wants them
	@$(BIN)/ruff check --fix $(CHECKED)
	@$(BIN)/ruff format $(CHECKED)

.PHONY: bench
bench: servers ## run the benchmarks
	@$(BIN)/python -m benchmarks $(ARGS)

.PHONY: wheel
wheel: $(VENV)/.dev ## build the wheel and the source archive into dist/
	@$(BIN)/python -m hatchling build

.PHONY: clean
clean: ## remove what the other targets made (not the cached servers)
	@rm -rf .venv .venv-* dist build .hypothesis .ruff_cache .mypy_cache
	@find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: .venv
.venv: $(VENV)/.dev

$(VENV)/.user: pyproject.toml requirements/dev.txt tools/venv.sh
	@if [ -e $(VENV)/.dev ] && [ $(VENV)/.dev -nt pyproject.toml ] && [ $(VENV)/.dev -nt requirements/dev.txt ]; \
		then touch $@; else sh tools/venv.sh $(VENV) user "$(PYTHON)"; fi

$(VENV)/.dev: pyproject.toml requirements/dev.txt tools/venv.sh
	@sh tools/venv.sh $(VENV) dev "$(PYTHON)"
