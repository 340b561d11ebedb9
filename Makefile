# Every target sets up what it needs. `make` alone lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

BIN := .venv/bin
STAMP := .venv/.installed
HOME_DIR := $(CURDIR)/.home
DAYS ?= 1
WORKERS ?= 2

# Half the CPU of jobs that live for seconds; long ones want the defaults.
SHORT_LIVED_JVM := -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC

# Airflow and Tidemark with nothing of the user's: a home of their own, no connection.
AIRFLOW := env AIRFLOW_HOME="$(HOME_DIR)" AIRFLOW__CORE__DAGS_FOLDER="$(CURDIR)/dags" AIRFLOW__CORE__LOAD_EXAMPLES=False \
  PATH="$(CURDIR)/$(BIN):$$PATH" PYTHONWARNINGS=ignore JAVA_TOOL_OPTIONS="$(or $(JAVA_TOOL_OPTIONS),$(SHORT_LIVED_JVM))"

.PHONY: help setup test demo demo-replication ui soak lint bench clean check-java

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 26

check-java:
	@.ci/check-java

$(STAMP): pyproject.toml | check-java
	@.ci/setup
	@touch $@

setup: $(STAMP) ## virtual environment, packages, Delta's jars
	@echo "Ready: $(BIN)/python"

lint: $(STAMP) ## ruff, mypy, the layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check -q .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

test: $(STAMP) ## lint, then all tests
	@$(MAKE) lint
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not soak"

soak: $(STAMP) ## long runs: the protocol at random, HISTORIES=300, VIEWS=300, SCHEDULES=40, REPLICATIONS=200 and COMMITS=1000 on real Spark, all kills
	@TIDEMARK_HISTORIES=$(or $(HISTORIES),300) $(BIN)/python -m pytest -q --timeout 36000 tests/properties/test_histories.py
	@TIDEMARK_VIEWS=$(or $(VIEWS),300) $(BIN)/python -m pytest -q --timeout 36000 tests/properties/test_view_histories.py
	@TIDEMARK_SCHEDULES=$(or $(SCHEDULES),40) TIDEMARK_SCHEDULE_STEPS=40 $(BIN)/python -m pytest -q --timeout 36000 \
	  tests/guarantees/test_fresh_streams_are_readable.py
	@TIDEMARK_COMMITS=$(or $(COMMITS),1000) $(BIN)/python -m pytest -q --timeout 36000 \
	  tests/guarantees/test_all_records_are_the_change_history.py
	@TIDEMARK_REPLICATIONS=$(or $(REPLICATIONS),200) $(BIN)/python -m pytest -q --timeout 36000 \
	  tests/guarantees/test_replication_random.py tests/guarantees/test_captured_events_are_what_happened.py
	@$(BIN)/python -m pytest -q -m soak
	@TIDEMARK_KILLS=all $(BIN)/python -m pytest -q --timeout 7200 tests/guarantees/test_killed_*.py

bench: $(STAMP) ## benchmarks; what they said is in tests/benchmarks/RESULTS.md
	@$(BIN)/python -m tests.benchmarks.has_data
	@$(BIN)/python -m tests.benchmarks.change_sets
	@$(BIN)/python -m tests.benchmarks.operator_overhead

demo: $(STAMP) ## real flights through a stream, DAYS=1; again: it goes on
	@$(AIRFLOW) $(BIN)/python dags/flights/demo.py --days $(DAYS)

demo-replication: $(STAMP) ## a PostgreSQL that is written to, replicated in ROUNDS=2
	@$(AIRFLOW) $(BIN)/python dags/replication/demo.py --rounds $(or $(ROUNDS),2)

ui: $(STAMP) ## Airflow with the example DAGs at http://localhost:8080
	@$(AIRFLOW) PORT=$(or $(PORT),8080) .ci/ui

clean: ## what the demo, the tests and the tools left; .venv stays
	@rm -rf .home .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist spark-warehouse metastore_db derby.log
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
