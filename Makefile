# The two commands of a fresh machine are `make demo` and `make test`; each sets up what it needs first.
SHELL := /bin/sh
.DEFAULT_GOAL := help
PYTHON := .venv/bin/python

.PHONY: help setup demo check test test-all bench clean

help:
	@echo 'make demo      a team of three scripted agents comes up, one is killed and healed, all go down'
	@echo 'make test      everything but the long tests; some ten minutes on two cores once the clients are installed'
	@echo 'make test-all  the long tests too'
	@echo 'make check     style, types, layers, sizes, fast tests, generated docs (what to run while working)'
	@echo 'make bench     what it costs and how fast it is, beside shell loops, tmuxp and the bare machine; less than ten minutes'
	@echo 'make clean     remove the virtual environment and caches of this checkout'

setup:
	@sh .ci/setup.sh

demo: setup
	@sh .ci/tmux.sh
	@$(PYTHON) tests/demo.py

check: setup
	@$(PYTHON) tests/check.py

test: setup
	@sh .ci/tmux.sh
	@sh .ci/chromium.sh || [ "$$CI" != true ]
	@$(PYTHON) tests/suites.py

test-all: setup
	@sh .ci/tmux.sh
	@sh .ci/chromium.sh || [ "$$CI" != true ]
	@$(PYTHON) tests/suites.py --long

bench: setup
	@sh .ci/tmux.sh
	@$(PYTHON) -m benchmarks

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
