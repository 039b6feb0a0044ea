# Everything runs from the project's own environment, made at the first call.
PYTHON ?= python3
PROFILE ?= sample
TOOLS := .venv-supply
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin

.PHONY: run test fast ui lint reference site notebooks verify real-model models-page benchmark lock sbom advisories clean
.DEFAULT_GOAL := run

$(VENV)/.installed: pyproject.toml requirements.txt requirements-cpu.txt
	@command -v $(PYTHON) >/dev/null || { echo "make: '$(PYTHON)' not found; install Python 3.11 or newer, or call make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) is older than Python 3.11; call make PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Making the environment in $(VENV) (a few minutes, once) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements-cpu.txt 2>/dev/null || true
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation -e '.[dev]'
	@touch $@

run: $(VENV)/.installed
	@$(BIN)/fairness-pipeline run --profile $(PROFILE)

ui: $(VENV)/.installed
	@$(BIN)/fairness-pipeline ui --profile $(PROFILE)

lint: $(VENV)/.installed
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

# Bytecode is kept, whatever the shell says: each process that a test starts would compile the package anew.
test: export PYTHONDONTWRITEBYTECODE =
test: lint
	@$(BIN)/pytest -rs --durations=8 -n $(WORKERS) --dist load --maxschedchunk 1 $(ARGS)

fast: lint
	@$(BIN)/pytest -m "not whole_run and not verify" -n $(WORKERS) $(ARGS)

reference: $(VENV)/.installed
	@$(BIN)/python -m fairness_pipeline.cli.reference > docs/reference.md

site: $(VENV)/.installed
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

notebooks: $(VENV)/.installed
	@$(BIN)/python -W ignore -m fairness_pipeline_tests.notebooks

verify: $(VENV)/.installed
	@$(BIN)/pytest -m verify --timeout 3600 -o faulthandler_timeout=0 -n $(WORKERS)
	@$(BIN)/python -m fairness_pipeline_tests.lineup $(if $(STUDY),--study $(STUDY))
	@$(BIN)/python -m fairness_pipeline_tests.verify $(if $(STUDY),--study $(STUDY))

real-model: $(VENV)/.installed
	@$(BIN)/python -m fairness_pipeline_tests.real_model

models-page: $(VENV)/.installed
	@$(BIN)/python -m fairness_pipeline_tests.models_page

benchmark: $(VENV)/.installed
	@$(BIN)/python -W ignore -m fairness_pipeline_tests.benchmark

# Tools that look at the environment have one of their own, so that they are no part of what they see.
$(TOOLS)/.installed: Makefile
	@$(PYTHON) -m venv $(TOOLS)
	@$(TOOLS)/bin/pip install --quiet --disable-pip-version-check cyclonedx-bom==7.5.0 pip-audit==2.10.1 uv==0.13.9
	@touch $@

lock: $(VENV)/.installed $(TOOLS)/.installed
	@$(BIN)/python -m fairness_pipeline_tests.supply.lock $(TOOLS)/bin/uv

sbom: $(VENV)/.installed $(TOOLS)/.installed
	@$(TOOLS)/bin/cyclonedx-py environment $(VENV) --pyproject pyproject.toml --output-reproducible --output-file sbom.json
	@echo "sbom.json: what is installed in $(VENV), as CycloneDX"

advisories: $(VENV)/.installed $(TOOLS)/.installed
	@$(BIN)/python -m fairness_pipeline_tests.supply.advisories $(TOOLS)/bin/pip-audit

clean:
	rm -rf $(TOOLS) $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
