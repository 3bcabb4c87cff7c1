# Two commands for a newcomer: `make demo` and `make test`. Both do their own set-up.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
export PYTHONDONTWRITEBYTECODE :=  # reading the tests anew takes each of their processes half a minute
JOBS   ?= $(shell echo $$(( $$(nproc 2>/dev/null || echo 2) + 1 )))  # one more than processors: many tests wait for other programs

.DEFAULT_GOAL := help
.PHONY: help setup demo test thorough crash check format lint types imports bench mutate docs lock clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.run: requirements/run.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Hummingbird needs Python 3.11 or newer; set PYTHON=python3.x") if sys.version_info < (3, 11) else None'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing what Hummingbird needs to run …"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/run.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements/dev.lock $(VENV)/.run
	@echo "installing what the tests need …"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/dev.lock
	@touch $@

setup: $(VENV)/.dev  ## create .venv with everything

demo: $(VENV)/.run  ## the main job on embedded defaults: no key, no network
	@$(BIN)/hummingbird demo

test: $(VENV)/.dev  ## the tests
	@scripts/real-parts $(BIN)/python
	$(BIN)/python -m pytest -n $(JOBS) -q

thorough: $(VENV)/.dev  ## all tests in every way: each contract on each backend, whole tables of faults; FOLDER=tests/contracts for a part
	@scripts/real-parts $(BIN)/python
	HUMMINGBIRD_TEST_ALL=1 $(BIN)/python -m pytest -n $(JOBS) -q $(FOLDER)

crash: $(VENV)/.dev  ## the service killed at every point of a journey; writes docs/crashes.md
	@scripts/real-parts $(BIN)/python
	$(BIN)/python -m tests.crash.every

check: $(VENV)/.dev  ## the gate before each commit
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	@scripts/real-parts $(BIN)/python
	$(BIN)/python -m pytest -n $(JOBS) -q

format: $(VENV)/.dev  ## rewrite the sources the way the gate wants them
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.dev  ## benchmarks beside their rivals, which get environments of their own; prints ratios
	$(BIN)/python -m benchmarks.rivals.setup
	$(BIN)/python -m benchmarks.run

mutate: $(VENV)/.dev  ## break each invariant on purpose: a test has to turn red; writes docs/mutations.md
	@scripts/real-parts $(BIN)/python
	$(BIN)/python -m tests.mutations.run --jobs $(JOBS)

docs: $(VENV)/.dev  ## the documentation as a site in build/site; renews the pages that are made of code
	$(BIN)/python -m tests.docs.generating --write
	$(BIN)/mkdocs build --strict  # with --quiet, --strict would see no warning

lock: $(VENV)/.dev  ## renew the pinned dependencies
	# what runs is what is tested: the tests' own needs decide first
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --upgrade pyproject.toml --group dev -o requirements/dev.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --upgrade pyproject.toml --group run -c requirements/dev.lock -o requirements/run.lock
	for set in rivals-a rivals-b; do \
	  $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	    --upgrade requirements/$$set.in -o requirements/$$set.lock; done

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist build
