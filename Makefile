# Two commands matter: `make run` starts the portal, `make test` proves it. Nothing but Python 3.11+ and make is needed.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

# KB_VENV names a ready-made virtual environment; it is used as it is and never installed into.
KB_VENV ?=
VENV := $(if $(KB_VENV),$(KB_VENV),.venv)
PY := $(VENV)/bin/python
PYTEST_ARGS ?=
# Test files are shared out among this many processes; 0 runs them one after the other in one.
TEST_WORKERS ?= 2
PYTEST := $(PY) -m pytest -n $(TEST_WORKERS) --dist loadfile

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export ORT_DISABLE_TELEMETRY := 1
export OMP_NUM_THREADS := 1

.PHONY: help venv venv-dev system-dev assets messages static prepare run test test-server test-s3 e2e lint format bench openapi translations clean

help: ## show this list
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

venv:
	@KB_VENV="$(KB_VENV)" scripts/venv.sh requirements.txt

venv-dev:
	@KB_VENV="$(KB_VENV)" scripts/venv.sh requirements-dev.txt

system-dev:
	@scripts/system_dev.sh

assets: venv
	@if [ -x scripts/build_assets.sh ]; then PYTHON="$(abspath $(VENV))/bin/python" scripts/build_assets.sh; fi

messages: venv
	@$(PY) scripts/messages.py compile

static: assets messages
	@scripts/static.sh "$(PY)"

prepare: static ## install and build everything `make run` needs, without starting it

run: prepare ## start the portal (KB_DATA_DIR, KB_HOST, KB_PORT choose where)
	@exec $(PY) manage.py serve --migrate

test: venv-dev system-dev static ## run every test
	@$(PYTEST) $(PYTEST_ARGS)

test-server: venv-dev system-dev static ## run every test on PostgreSQL and Redis, started for it
	@$(PY) scripts/with_servers.py $(PYTEST) $(PYTEST_ARGS)

test-s3: venv-dev system-dev static ## run every test with its files on an S3-compatible server, started for it
	@$(PY) scripts/with_servers.py --s3 $(PYTEST) $(PYTEST_ARGS)

e2e: venv-dev system-dev static ## run only the tests that drive a browser
	@$(PYTEST) -m e2e $(PYTEST_ARGS)

lint: venv-dev assets messages ## style, types, layers, templates, migrations, translations, OpenAPI
	@scripts/lint.sh "$(PY)"

format: venv-dev ## rewrite Python files and templates in house style
	@$(PY) -m ruff check --fix --quiet .
	@$(PY) -m ruff format .

bench: venv-dev ## measure; results and their meaning are in benchmarks/RESULTS.md
	@scripts/bench.sh "$(PY)"

openapi: venv-dev ## write docs/openapi.yaml from the code
	@DJANGO_SETTINGS_MODULE=kbportal.settings.test $(PY) manage.py spectacular --validate --fail-on-warn --file docs/openapi.yaml

translations: venv-dev ## bring locale/*.po up to date with the texts in code and templates
	@$(PY) scripts/messages.py extract

clean: ## remove everything that was built; the data folder stays
	rm -rf .venv .build staticfiles static/dist node_modules .mypy_cache .ruff_cache .pytest_cache .import_linter_cache test-artifacts
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
	find . -name '*.mo' -path '*/LC_MESSAGES/*' -delete
