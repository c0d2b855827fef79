# `make demo` and `make test` each build the virtual environment they need; nothing else has to be installed by hand.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# for `make release`: the oldest and the newest that is supported
PYTHONS ?= $(BIN)/python
# Test workers share the cores between them: one BLAS thread each, and one worker more than there are cores, as many tests
# wait for processes that they have started. Each takes whole files, whose tests share fixtures.
TEST_ENV := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=
TEST_WORKERS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PARALLEL := -n $(TEST_WORKERS) --dist loadscope --no-loadscope-reorder
PYTEST := $(BIN)/pytest $(PARALLEL)
COVERAGE := $(VENV)/coverage.txt

.PHONY: demo test test-all matrix browser lint figures gallery docs release clean

demo: $(VENV)/installed
	$(BIN)/amsbq run examples/epidemic/problem.toml --journal epidemic.jsonl

# Linters, types, unit and property tests, an array of setups that covers all pairs of features, and one test of every
# front door from end to end.
test: lint
	$(TEST_ENV) $(PYTEST) -m "not slow and not matrix and not browser and not slurm"

# All of it: also the documentation, notebook, release, browsers, clusters, the paper, the arena's truths, and kills. Says
# how many lines of the library the test workers ran, without the processes that they started; which not, is in a file.
test-all: lint browser
	$(TEST_ENV) $(BIN)/python -m slipcover --source src/amsbq --skip-covered --out $(COVERAGE) \
	-m pytest $(PARALLEL) --durations=25 -W ignore::pytest.PytestAssertRewriteWarning
	@awk '/^\(summary\)/ {printf "%.1f %% of %d lines of the library were run; the others are in $(COVERAGE)\n", 100 - 100 * $$3 / $$2, $$2}' $(COVERAGE)

# Every pair of features, and some triples, with the default model: hours. `make test` has the array that covers all pairs.
matrix: $(VENV)/installed
	$(TEST_ENV) $(BIN)/pytest -n $(TEST_WORKERS) -m matrix tests/composition

# The page of `amsbq report` is tested in Chromium. Where nobody has it and we may, as in a container, it is installed.
browser:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null \
	|| { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -qq -y chromium >/dev/null; } \
	|| echo "there is no Chromium: tests of the report page in a browser are skipped"

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

figures: $(VENV)/installed
	$(BIN)/python examples/ball.py docs/picture.png
	$(BIN)/python docs/badges.py

# The pictures and answers of the examples whose code has changed.
gallery: $(VENV)/installed
	$(BIN)/python docs/gallery.py

# Runs the code on all pages that have changed, or all if the library has; then writes site/index.html: open it in a browser, no server is needed.
docs: $(VENV)/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Wheel and sdist in dist/, and the wheel in an empty environment of each Python that is here.
release: $(VENV)/installed
	$(BIN)/python -m hatchling build -t wheel -t sdist -d dist
	for python in $(PYTHONS); do $$python -m pip download --quiet --dest build/wheelhouse numpy scipy threadpoolctl loky; done
	AMSBQ_WHEELHOUSE=$(CURDIR)/build/wheelhouse AMSBQ_PYTHONS="$(PYTHONS)" $(TEST_ENV) $(BIN)/pytest -rs tests/test_release.py

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) site .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
