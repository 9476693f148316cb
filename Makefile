# Every target builds its own environment in .venv from the pinned versions of constraints.txt.
PYTHON ?= python3
PIP = PIP_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 .venv/bin/python -m pip install --quiet
BIN = .venv/bin

.PHONY: demo serve test test-rest coverage test-all check format bench docs lowest clean

demo: .venv/base
	$(BIN)/hdr4me demo --output demo

serve: .venv/collector
	$(BIN)/hdr4me demo --serve --output demo

# What tests/slow.txt lists, and what needs Spark, is left to test-rest. Coverage is that of both together.
PYTEST = $(BIN)/pytest -n auto --dist worksteal --cov --cov-report= --cov-fail-under=0

test: .venv/dev
	$(PYTEST) -m "not slow"

test-rest: .venv/dev .venv-peers/made
	$(PYTEST) -m slow --cov-append

coverage: .venv/dev
	$(BIN)/coverage report --skip-covered

test-all:
	$(MAKE) test
	$(MAKE) test-rest
	$(MAKE) coverage

check: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/codespell src docs clients tests benchmarks examples README.md CONTRIBUTING.md CHANGELOG.md
	$(BIN)/pytest -q -p no:cacheprovider tests/test_architecture.py tests/test_vocabulary.py

format: .venv/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: .venv/dev
	$(BIN)/python -m sphinx -b html -W --keep-going -q docs site
	@echo "open site/index.html"

lowest:
	$(PYTHON) -m venv .venv-lowest
	PIP_CONSTRAINT=lowest.txt .venv-lowest/bin/python -m pip install --quiet -e . pytest pytest-xdist hypothesis mpmath pandas \
	  msgspec scikit-learn statsmodels
	.venv-lowest/bin/pytest -n auto --dist worksteal tests/channels tests/survey tests/client tests/io tests/tally \
	  tests/statistics tests/mechanisms tests/framework tests/planner tests/kernels -m "not spark" \
	  --ignore tests/survey/test_tolerance.py  # it needs the collector

bench: .venv/dev
	PYTHONPATH=benchmarks $(BIN)/python -m bench --peers ~/.cache/hdr4me/peers

.venv/base: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) -e .
	touch $@

.venv/collector: .venv/base
	$(PIP) -e '.[collector]'
	touch $@

.venv/dev: .venv/base
	$(PIP) -e '.[dev]'
	touch $@

# The libraries that tests/peers compares with need older versions of what constraints.txt pins.
.venv-peers/made: peers.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --disable-pip-version-check -r peers.txt
	touch $@

clean:
	rm -rf .venv .venv-lowest .venv-peers demo build dist site
