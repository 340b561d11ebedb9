# Every target sets up what it needs. `make` alone lists them.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

BIN := .venv/bin
STAMP := .venv/.installed
HOME_DIR := $(CURDIR)/.home
DAYS ?= 1
WORKERS ?= 3
QUICK_WORKERS ?= 2 # one of them starts a Spark: a second one would take longer to warm up than its tests
SHARD ?= 1/1
override SHARD := $(subst /, ,$(SHARD))
# Without bytecode, each Airflow compiles all its packages when it starts, and takes three times the CPU.
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/python -m pytest -q --dist loadfile --no-loadscope-reorder
# Where quick tests are: to collect all tests takes each process of pytest a quarter of a minute.
QUICK := tests/unit tests/control tests/architecture $(shell grep -rl "mark.quick" tests --include="test_*.py")

# Half the CPU of jobs that live for seconds; long ones want the defaults.
SHORT_LIVED_JVM := -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC
# Classes as .ci/fetch-jars left them: a third less CPU for each Spark that starts. White space would end the option.
CLASSES := $(if $(word 2,$(CURDIR)),,-XX:SharedArchiveFile=$(CURDIR)/.cache/spark.jsa -Xlog:cds=off -Xlog:cds+dynamic=off)

# Airflow and Tidemark with nothing of the user's: a home of their own, no connection, no database, store or lake.
AIRFLOW := env $(addprefix -u ,$(filter AIRFLOW_% TIDEMARK_%,$(.VARIABLES))) AIRFLOW_HOME="$(HOME_DIR)" AIRFLOW__CORE__DAGS_FOLDER="$(CURDIR)/dags" AIRFLOW__CORE__LOAD_EXAMPLES=False \
  PATH="$(CURDIR)/$(BIN):$$PATH" PYTHONWARNINGS=ignore JAVA_TOOL_OPTIONS="$(or $(JAVA_TOOL_OPTIONS),$(SHORT_LIVED_JVM) $(CLASSES))"

.PHONY: help setup test test-quick test-all coverage compat demo demo-replication demo-ingest soak ui lint bench clean check-java

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 26

check-java:
	@.ci/check-java

$(STAMP): pyproject.toml .ci/constraints/dev.txt | check-java
	@.ci/setup
	@touch $@

setup: $(STAMP) ## virtual environment, packages, Delta's jars
	@echo "Ready: $(BIN)/python"

lint: $(STAMP) ## ruff, mypy, dead code, the layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check -q .
	@$(BIN)/mypy
	@$(BIN)/python .ci/dead-code
	@$(BIN)/lint-imports

test: $(STAMP) ## lint, then all tests but those that wait for test-all
	@$(MAKE) lint
	@$(PYTEST) -n $(WORKERS) -m "not nightly"

test-quick: $(STAMP) ## lint, what needs no Spark, and a test with Spark for each subject
	@$(MAKE) lint
	@$(PYTEST) -n $(QUICK_WORKERS) -m quick $(QUICK)

test-all: $(STAMP) ## long runs, all failpoints, whole deployments: SHARD=1/8
	@$(PYTEST) -n $(WORKERS) --timeout 3600 -m nightly --splits $(word 2,$(SHARD)) --group $(word 1,$(SHARD)) --durations-path tests/nightly_seconds.json \
	  --splitting-algorithm least_duration $(MORE)

compat: ## a slice of the tests with other versions of Python, Airflow and Spark: NAME=spark-4.1
	@for name in $(or $(NAME),$$(.ci/compat | cut -d" " -f1)); do .ci/compat $$name || exit 1; done

coverage: $(STAMP) ## lines and branches that `make test` runs, drivers included
	@rm -rf .coverage.d && mkdir .coverage.d
	@$(BIN)/python -m coverage run -m pytest -q --dist loadfile --no-loadscope-reorder -n $(WORKERS) -m "not nightly"
	@$(BIN)/python -m coverage combine -q && $(BIN)/python -m coverage report --format=total --precision=2

bench: $(STAMP) ## benchmarks; what they said is in tests/benchmarks/RESULTS.md
	@$(BIN)/python -m tests.benchmarks.has_data
	@$(BIN)/python -m tests.benchmarks.change_sets
	@$(BIN)/python -m tests.benchmarks.operator_overhead

demo: $(STAMP) ## real flights through a stream, DAYS=1; again: it goes on
	@$(AIRFLOW) $(BIN)/python dags/flights/demo.py --days $(DAYS)

demo-replication: $(STAMP) ## a live PostgreSQL, or SOURCE=mariadb, replicated in ROUNDS=2
	@$(AIRFLOW) $(BIN)/python dags/replication/demo.py --source $(or $(SOURCE),postgresql) --rounds $(or $(ROUNDS),2)

demo-ingest: $(STAMP) ## the ingest service, and four writers that send the flights of a day; two get killed
	@$(AIRFLOW) $(BIN)/python dags/ingest/demo.py

soak: $(STAMP) ## kills at random: KILLS=200 of channels' writers, half as many of pipes, a tenth of replications; PROGRAMS=1000 kept queries
	@TIDEMARK_SOAK=$(or $(KILLS),200) $(PYTEST) -s --timeout 14400 tests/guarantees/test_killed_writers_each_row_once.py -k two_hundred
	@TIDEMARK_SOAK_LOADS=$$(($(or $(KILLS),200) / 2)) $(PYTEST) --timeout 7200 tests/guarantees/test_killed_loads_each_file_once.py -k hundred
	@TIDEMARK_SOAK_OLTP=$$(($(or $(KILLS),200) / 10)) $(PYTEST) --timeout 7200 tests/guarantees/test_replicated_oltp.py tests/guarantees/test_replicated_loads.py
	@TIDEMARK_SOAK_PROGRAMS=$(or $(PROGRAMS),1000) $(PYTEST) --timeout 14400 tests/properties/test_kept_queries.py -k many_more

ui: $(STAMP) ## Airflow with the example DAGs at http://127.0.0.1:8080; PORT=8081 LISTEN=0.0.0.0 for others
	@$(AIRFLOW) PORT=$(or $(PORT),8080) LISTEN=$(or $(LISTEN),127.0.0.1) .ci/ui

.PHONY: constraints
constraints: $(STAMP) ## .ci/constraints anew after pyproject.toml has changed; UPGRADE=1 takes the newest of all
	@.ci/constrain

.PHONY: operator-pages
operator-pages: $(STAMP) ## tables of arguments on the operators' pages, from signatures and docstrings
	@PYTHONWARNINGS=ignore $(BIN)/python -m tests.architecture.operator_pages

.PHONY: client-page
client-page: $(STAMP) ## the page of the Python client, from signatures and docstrings
	@PYTHONWARNINGS=ignore $(BIN)/python -m tests.architecture.client_page

.PHONY: docs
docs: $(STAMP) ## the documentation as a site, in build/docs
	@$(BIN)/python -m sphinx -q -W --keep-going -b html -d build/doctrees provider/docs build/docs
	@echo "Built: build/docs/index.html"

.PHONY: pictures
pictures: $(STAMP) ## the diagrams of the docs, as SVG
	@$(BIN)/python provider/docs/images/draw.py

clean: ## what the demo, the tests and the tools left; .venv stays
	@rm -rf .home .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist spark-warehouse metastore_db derby.log
	@find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
