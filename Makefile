# The two commands a newcomer needs: `make demo` and `make test`. Everything is installed into .venv.
PYTHON ?= python3
unexport PYTHON  # which examples use too
unexport PYTHONDONTWRITEBYTECODE  # the tests start hundreds of processes, and each would compile everything again
BIN := .venv/bin
BASE ?= origin/main
, := ,
PIP := PIP_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip --quiet install
UV := env $${PIP_CERT:+SSL_CERT_FILE=$$PIP_CERT} $(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt
# uv installs in seconds what takes pip minutes; where uv cannot, for it does not read pip's configuration, pip does.
INSTALL = { $(PIP) uv && $(UV) --editable '$(1)' 2> /dev/null; } || $(PIP) --editable '$(1)'

.PHONY: demo setup test test-changed test-quick attacks torture mutants check lint format docs recipes recording bench bench-size bench-rivals screenshots lock clean

demo: .venv/.demo  ## from nothing to a table of scores, on a model that runs on your CPU
	@$(BIN)/fairtrial demo

setup: .venv/.setup  ## everything for use and development

test: setup lint  ## all tests; types are checked beside them, for that takes as long as many tests on one core
	@$(BIN)/mypy > .venv/types.log 2>&1 & types=$$!; \
	REQUIRE_LIBRARIES=1 $(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder --durations-to=.venv/durations.json $(PARTS); tests=$$?; \
	wait $$types; types=$$?; cat .venv/types.log; exit $$((tests || types))

test-changed: setup  ## the tests that a change calls for, since this branch left BASE
	@parts=$$($(BIN)/python -m tests.parts $(BASE)) && echo "called for: $${parts:-nothing}" && test -z "$$parts" || $(MAKE) test PARTS="$$parts"

test-quick: setup  ## a minute and a half: no browser, no model, no simulation, nothing slow
	REQUIRE_LIBRARIES=1 $(BIN)/pytest -n logical --dist worksteal -m "not browser and not model and not simulation and not slow and not attacks"

attacks: setup  ## every attack in its long form: hostile suites, pages, archives, answers
	REQUIRE_LIBRARIES=1 $(BIN)/pytest -n 2 --dist loadfile tests/attacks tests/webpage/test_leaks.py -m "attacks or not attacks"

torture: setup  ## kills, faults and odd inputs for half an hour; ARGS="60 --seed 7" for an hour
	REQUIRE_LIBRARIES=1 $(BIN)/python -m tests.torture $(ARGS)

mutants: setup  ## whether the tests would notice: 200 small changes to the code
	$(BIN)/python -m benchmarks.mutants

check: lint  ## format, lint, layers, types
	$(BIN)/mypy

lint: setup  ## format, lint, layers: what takes a second
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: setup  ## the documentation as a site, in build/docs/site
	$(BIN)/python -m docs.site

recipes: setup  ## what the recipes of the cookbook print, written into their pages
	$(BIN)/python -m docs.recipes

recording: setup  ## the terminal in the README, recorded anew
	$(BIN)/python -m docs.record

bench: setup  ## speed and scale, with the page of results
	$(BIN)/python -m compileall -q src  # where bytecode is not written by itself, every start would compile
	$(BIN)/python -m benchmarks

bench-size: setup  ## every command and page on a run of a million trials
	$(BIN)/python -m benchmarks.size $(ARGS)

bench-rivals: setup  ## other tools on the same server, installed on request; writes docs/rivals.md
	$(BIN)/python -m benchmarks.rivals $(ARGS)

screenshots: setup  ## pictures of every page in light, dark and on a phone, into screenshots/
	$(BIN)/python -m docs.screenshots

lock: setup  ## renew the pinned versions
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11.0 --upgrade --all-extras --no-header --no-annotate \
		--no-emit-index-url --no-emit-find-links pyproject.toml -o constraints.txt

clean:
	rm -rf .venv

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.demo: .venv/bin/python pyproject.toml constraints.txt
	@echo "Installing fairtrial and its embedded model's runtime into .venv …"
	@$(call INSTALL,.[local])
	@touch $@

.venv/.setup: .venv/bin/python pyproject.toml constraints.txt
	@echo "Installing everything into .venv …"
	@$(call INSTALL,.[all$(,)dev])
	@$(BIN)/python -m compileall -q src benchmarks  # once, and not by every worker of the tests at the same time
	@touch $@ .venv/.demo
