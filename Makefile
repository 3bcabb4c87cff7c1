# Two commands for a newcomer: `make demo` and `make test`. Both do their own set-up.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
export PYTHONDONTWRITEBYTECODE :=  # reading the tests anew takes each of their processes half a minute
# Tests wait for processes half of the time: two more of them than there are cores.
JOBS   ?= $(shell expr $$(nproc 2>/dev/null || echo 2) + 2)
PYTEST := $(BIN)/python -m tests.cpu_time $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -q

.DEFAULT_GOAL := help
.PHONY: help setup demo test thorough slowest coverage crash simulate check format fmt lint types bench mutate pictures docs wheel \
  fresh-install image lock clean

help:  ## this list
	@grep -hE '^[a-z -]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/.run: requirements/run.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Hummingbird needs Python 3.11 or newer; set PYTHON=python3.x") if sys.version_info < (3, 11) else None'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing what Hummingbird needs to run …"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r requirements/run.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: requirements/dev.lock $(VENV)/.run
	@echo "installing what the tests need …"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --require-hashes -r requirements/dev.lock
	@touch $@

setup: $(VENV)/.dev  ## create .venv with everything

demo: $(VENV)/.run  ## the main job on embedded defaults: no key, no network
	@$(BIN)/hummingbird demo

test: $(VENV)/.dev  ## the tests, and what they cost; FOLDER=tests/gitlab for a part, or a file
	@scripts/real-parts $(BIN)/python
	@$(PYTEST) $(FOLDER)

thorough: $(VENV)/.dev  ## all tests in every way: each contract on each backend, whole tables of faults; takes FOLDER
	@HUMMINGBIRD_TEST_ALL=1 scripts/real-parts $(BIN)/python
	@HUMMINGBIRD_TEST_ALL=1 $(PYTEST) --timeout 900 $(FOLDER)

slowest: $(VENV)/.dev  ## `make test` that says which folders and tests are slowest, by CPU and by the clock; takes FOLDER
	@scripts/real-parts $(BIN)/python
	@$(PYTEST) -p tests.slowest $(FOLDER)

coverage: export COVERAGE_FILE := $(CURDIR)/build/coverage/data
coverage: $(VENV)/.dev  ## which lines of src/hummingbird `make test` runs; writes build/coverage.xml; takes FOLDER
	@scripts/real-parts $(BIN)/python
	@rm -rf build/coverage && mkdir -p build/coverage
	@COVERAGE_PROCESS_START=$(CURDIR)/pyproject.toml $(PYTEST) $(FOLDER)
	@$(BIN)/coverage combine -q
	@$(BIN)/coverage xml -q
	@$(BIN)/coverage report --skip-covered --sort=cover

crash: $(VENV)/.dev  ## the service killed at every point of a journey; writes docs/crashes.md
	@scripts/real-parts $(BIN)/python
	$(BIN)/python -m tests.crash.every

simulate: export PYTHONHASHSEED := 0
simulate: $(VENV)/.dev  ## the service in simulated worlds where things go wrong: SEEDS=1000, or SEED=42 with every call
	@$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED) -v,--coverage --seeds $(or $(SEEDS),1000))

check: $(VENV)/.dev  ## the gate before each commit
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	@scripts/real-parts $(BIN)/python
	@$(PYTEST)

format: $(VENV)/.dev  ## rewrite the sources the way the gate wants them
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

fmt: format  ## the same as `make format`

lint: $(VENV)/.dev  ## format, style and import contracts, as `make check` tries them
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

types: $(VENV)/.dev  ## strict types, as `make check` tries them
	$(BIN)/mypy

bench: $(VENV)/.dev  ## benchmarks beside their rivals, which get environments of their own; prints ratios
	$(BIN)/python -m benchmarks.rivals.setup
	$(BIN)/python -m benchmarks.run

mutate: $(VENV)/.dev  ## break each invariant on purpose: a test has to turn red; writes docs/mutations.md
	@scripts/real-parts $(BIN)/python
	$(BIN)/python -m tests.mutations.run --jobs $(JOBS)

pictures: $(VENV)/.dev  ## pictures of every page of the dashboard in build/pictures; renews those in docs/pictures
	$(BIN)/python -m tests.dashboard.pictures build/pictures docs/pictures

docs: $(VENV)/.dev  ## the documentation as a site in build/site; renews the pages that are made of code
	$(BIN)/python -m tests.docs.generating --write
	$(BIN)/mkdocs build --strict  # with --quiet, --strict would see no warning

wheel: $(VENV)/.run  ## the wheel and the source archive in dist
	rm -rf dist
	$(BIN)/python -m hatchling build --directory dist

fresh-install: $(if $(WHEEL),,wheel)  ## install the wheel with pip in an empty environment and run it; WHEEL=FILE for another one
	rm -rf build/fresh
	$(PYTHON) -m venv build/fresh
	build/fresh/bin/pip install -q --disable-pip-version-check $(or $(WHEEL),dist/*.whl)
	cd build/fresh && bin/hummingbird --version && bin/hummingbird demo

image: IMAGE ?= localhost/hummingbird
image:  ## the container image, with podman; IMAGE=NAME, BUILD_OPTIONS="--build-arg EXTRAS=otel"
	version=$$($(PYTHON) scripts/release.py version) && \
	  podman build --build-arg VERSION=$$version $$(sed '/^#/d; s/^/--build-arg=/' deploy/base-images.env) $(BUILD_OPTIONS) -f deploy/Containerfile -t $(IMAGE):$$version .

# what the tests and the container image have; otel and sentry are files of their own in deploy/extras
lock: RUN_EXTRAS := acp aws buckets kubernetes mcp
lock: $(VENV)/.dev  ## renew the pinned dependencies
	# what runs is what is tested: the tests' own needs decide first
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --upgrade pyproject.toml --all-extras --group dev -o requirements/dev.lock
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --upgrade pyproject.toml $(RUN_EXTRAS:%=--extra %) --group run -c requirements/dev.lock -o requirements/run.lock
	echo pip | $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	  --upgrade - -o requirements/pip.lock
	for set in rivals-a rivals-b; do \
	  $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	    --upgrade requirements/$$set.in -o requirements/$$set.lock; done

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist build
