# Everything runs from the project's own environment, made at the first call.
PYTHON ?= python3
PROFILE ?= sample
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test fast ui lint reference verify benchmark clean
.DEFAULT_GOAL := run

$(VENV)/.installed: pyproject.toml constraints.txt
	@command -v $(PYTHON) >/dev/null || { echo "make: '$(PYTHON)' not found; install Python 3.11 or newer, or call make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) is older than Python 3.11; call make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Making the environment in $(VENV) (a few minutes, once) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]' -c constraints.txt
	@touch $@

run: $(VENV)/.installed
	@$(BIN)/fairness-pipeline run --profile $(PROFILE)

ui: $(VENV)/.installed
	@$(BIN)/fairness-pipeline ui --profile $(PROFILE)

lint: $(VENV)/.installed
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

test: lint
	@$(BIN)/pytest -rs --durations=8 -n $(WORKERS) --dist load --maxschedchunk 1 $(ARGS)

fast: lint
	@$(BIN)/pytest -m "not whole_run and not kills" -n $(WORKERS) $(ARGS)

reference: $(VENV)/.installed
	@$(BIN)/python -m fairness_pipeline.cli.reference > docs/reference.md

verify: $(VENV)/.installed
	@$(BIN)/pytest -m kills --timeout 3600 -n $(WORKERS)
	@$(BIN)/python -m fairness_pipeline_tests.lineup $(if $(STUDY),--study $(STUDY))
	@$(BIN)/python -m fairness_pipeline_tests.verify $(if $(STUDY),--study $(STUDY))

benchmark: $(VENV)/.installed
	@$(BIN)/python -W ignore -m fairness_pipeline_tests.benchmark

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
