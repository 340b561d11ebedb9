"""Fixtures that several rooms share."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import coverage
import hypothesis
import pytest

from tests.file_order import RANKS_TO, rank_files
from tests.tiers import ALL_TIERS, is_quick, tier_of, wait_of
from tidemark.model.spark import AVRO_PACKAGE, MARIADB_PACKAGE, POSTGRESQL_PACKAGE, S3_SETTINGS
from tidemark.testing import SHORT_LIVED_JVM

CLASSES = Path(__file__).parents[1] / ".cache" / "spark.jsa"  # left by .ci/fetch-jars, unless its path has white space
ARCHIVE = f" -XX:SharedArchiveFile={CLASSES} -Xlog:cds=off -Xlog:cds+dynamic=off" if CLASSES.exists() else ""
os.environ.setdefault("JAVA_TOOL_OPTIONS", f"{SHORT_LIVED_JVM}{ARCHIVE}")  # for the drivers that tests submit

# It runs hundreds of tests: a heap that need not grow saves full collections. Only what runs ten times as often as
# by default is compiled for speed, which saves a fifth of the CPU: most paths of Spark's planner run a few times.
LONG_LIVED_JVM = (
    "-XX:TieredStopAtLevel=4 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -Xms1500m -Xmn600m "
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
CODEGEN = "spark.sql.codegen.factoryMode"  # without generated code a small Delta statement takes a fifth less CPU

REMEMBER_LITTLE = {
    **dict.fromkeys(
        (
            "spark.ui.retainedJobs",
            "spark.ui.retainedStages",
            "spark.ui.retainedTasks",
            "spark.sql.ui.retainedExecutions",
        ),
        "10",
    ),
    "spark.databricks.delta.delta.log.cacheSize": "16",  # tables, each with up to 13 MB of expressions
}  # thousands of finished queries and hundreds of tables would fill the heap

# A finalizer logs this, within any call of a test, and at exit to a stream of pytest that is closed.
CLOSED_BY_PY4J = "Closing down clientserver connection"
logging.getLogger("py4j.clientserver").addFilter(lambda record: record.msg != CLOSED_BY_PY4J)

hypothesis.settings.register_profile("without a clock", deadline=None)  # a slow machine is no failure
hypothesis.settings.register_profile("the same", deadline=None, derandomize=True)
hypothesis.settings.load_profile("without a clock")
os.environ.setdefault("TIDEMARK_SPARK_MODE", "submit")  # those of the warm Spark name it
os.environ.setdefault("TIDEMARK_DRIVER_ENVIRONMENT", "COVERAGE_*")  # what drivers run is counted, too


@dataclass(frozen=True)
class Documented:
    """What the docs make for PostgreSQL. `deletes`: the statement that is due after the migration."""

    empty: str
    deletes: str


if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.catalog import Table
    from xdist.workermanage import WorkerController

    from tests.postgresql import PostgresServer


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local Spark with Delta for all tests of the process; tests that change settings take `spark.newSession()`."""
    from tidemark.testing import local_spark

    names = (S3_SETTINGS["spark.jars.packages"], AVRO_PACKAGE, POSTGRESQL_PACKAGE, MARIADB_PACKAGE)
    packages = {"spark.jars.packages": ",".join(names)}
    home = tmp_path_factory.mktemp("warehouse")
    java = {"spark.driver.extraJavaOptions": f"-Dderby.system.home={home} {LONG_LIVED_JVM}"}
    settings = {**S3_SETTINGS, **packages, **REMEMBER_LITTLE, **java, CODEGEN: "NO_CODEGEN"}
    session = local_spark(warehouse=home, memory="3g", more=settings)
    with pytest.MonkeyPatch.context() as patched:
        _list_tables_by_generated_code(patched)
        yield session
    session.stop()


def _list_tables_by_generated_code(patched: pytest.MonkeyPatch) -> None:
    """Spark itself cannot do it otherwise: EXPRESSION_DECODING_FAILED."""
    from pyspark.sql import SparkSession
    from pyspark.sql.catalog import Catalog

    interpreted = Catalog.listTables

    def listed(self: Catalog, *arguments: str, **named: str) -> list[Table]:
        asked = [self._sparkSession, SparkSession.getActiveSession() or self._sparkSession]  # both have a say
        for session in asked:
            session.conf.set(CODEGEN, "FALLBACK")
        try:
            return interpreted(self, *arguments, **named)
        finally:
            for session in asked:
                session.conf.set(CODEGEN, "NO_CODEGEN")

    patched.setattr(Catalog, "listTables", listed)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[PostgresServer]:
    """One PostgreSQL server for all tests of the process; each takes a database of its own."""
    from tests.postgresql import postgresql_or_skip

    with postgresql_or_skip() as server:
        yield server


@pytest.fixture(scope="session")
def source_server() -> Iterator[PostgresServer]:
    """One PostgreSQL server whose log can be decoded, for all tests of the process; each takes a database of its own,
    and leaves no slot behind: those that are there count for the whole server.
    """
    from tests.postgresql import LOGICAL, postgresql_or_skip

    with postgresql_or_skip(LOGICAL) as server:
        yield server


@pytest.fixture(scope="module", autouse=True)
def _databases_go_with_their_file() -> Iterator[None]:
    yield
    from tests.postgresql import drop_databases

    drop_databases()


@pytest.fixture(scope="session")
def documented(postgresql: PostgresServer) -> Documented:
    """Users, and an empty database to be copied, as the docs make them."""
    from tests.postgresql import PASSWORD

    text = (Path(__file__).parents[1] / "provider/docs/how-to/use-postgresql.md").read_text()
    users, rights, deletes = re.findall(r"```sql\n(.*?)```", text, flags=re.DOTALL)
    for database, block in (("postgres", users), ("tidemark", rights)):
        for statement in filter(str.strip, block.split(";")):
            postgresql.sql(re.sub(r"'choose \w+'", f"'{PASSWORD}'", statement), database)
    return Documented("tidemark", deletes)


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite store at this release's revision, to be copied: that is quicker than migrating each."""
    from tidemark.control.store import ControlStore

    path = tmp_path_factory.mktemp("migrated") / "control.db"
    store = ControlStore(f"sqlite:///{path}")
    store.migrate()
    store.close()
    return path


@pytest.fixture(scope="session")
def migrated_database(postgresql: PostgresServer, documented: Documented) -> str:
    """A database at this release's revision, to be copied: that is quicker than migrating each. The user `tidemark` may
    do in it what the docs let tasks do.
    """
    from tidemark.control.store import ControlStore

    name = postgresql.new_database(template=documented.empty, kept=True)
    store = ControlStore(postgresql.url(name, user="tidemark_owner"))
    store.migrate()
    postgresql.sql(documented.deletes, name)
    postgresql.sql("DELETE FROM tidemark_store", name)  # each copy draws an id of its own
    return name


@pytest.fixture
def sqlite_store(migrated_file: Path, tmp_path: Path) -> str:
    """The URL of a migrated control store of its own in a file."""
    shutil.copy(migrated_file, tmp_path / "control.db")
    return f"sqlite:///{tmp_path}/control.db"


@pytest.fixture
def postgresql_store(postgresql: PostgresServer, migrated_database: str) -> str:
    """The URL of a migrated control store of its own on PostgreSQL, with the least rights for tasks."""
    from tidemark.control.store import ControlStore

    database = postgresql.new_database(template=migrated_database)
    ControlStore(postgresql.url(database)).migrate()  # of a copy it draws the id
    return postgresql.url(database, user="tidemark")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tiers-to", help="a file for the tiers of all collected tests, as JSON")
    parser.addoption("--seconds-to", help="a file that learns how long each test took, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Without the long tests, every run has the same examples, so that a failure is that of a change."""
    if config.option.markexpr in ("not nightly", "quick"):
        hypothesis.settings.load_profile("the same")
    if (file := config.getoption("--seconds-to")) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Seconds(Path(file)))


def pytest_sessionfinish() -> None:
    """Keeps what coverage counted: a worker that takes long to end is killed, and its figures would be lost."""
    if running := coverage.Coverage.current():
        running.save()


class Seconds:
    """Keeps how long each test took, set-up included; pytest-split does so too, but not with several workers."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._taken: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._taken[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        known: dict[str, float] = json.loads(self._file.read_text()) if self._file.exists() else {}
        known |= {test: round(seconds, 1) for test, seconds in self._taken.items()}
        self._file.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """By what files need, see `Files`; each worker says so, and all say the same."""
    for item in items:
        if mark := wait_of(item):
            item.add_marker(mark)
        if is_quick(item):
            item.add_marker("quick")
    ranks = rank_files(items)
    items.sort(key=lambda item: ranks[item.nodeid.partition("::")[0]])
    if workers := getattr(config, "workerinput", None):
        note = Path(workers[RANKS_TO])
        half = note.with_suffix(f".{workers['workerid']}")
        half.write_text(json.dumps(ranks))
        half.replace(note)
    config.stash[ALL_TIERS] = [tier_of(item) for item in items]
    if file := config.getoption("--tiers-to"):
        Path(file).write_text(json.dumps(config.stash[ALL_TIERS]))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    home = node.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    node.workerinput[RANKS_TO] = str(home / "ranks.json")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    from tests.file_order import Files

    return Files(config, log)
