# `make demo` and `make test` each build the virtual environment they need; nothing else has to be installed by hand.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Test workers share the cores between them: one BLAS thread each.
TEST_ENV := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.PHONY: demo test lint figures clean

demo: $(VENV)/installed
	$(BIN)/amsbq run examples/epidemic/problem.toml --journal epidemic.jsonl

test: lint
	$(TEST_ENV) $(BIN)/pytest -n auto

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

figures: $(VENV)/installed
	$(BIN)/python examples/forrester.py docs/forrester.png

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
