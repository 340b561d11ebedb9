"""A replication of a thousand small tables: what its first run, a quiet run and a run with a few changes cost.

    python -m tests.benchmarks.replication_of_many --tables 1000 --changed 20

A MariaDB has so many tables of 10 rows. `replicate` runs by `dag.test()`, each job in a Spark of its own. The first run
has all backfills, quiet runs follow, then runs after a change of some tables. With `--backfilled 40` only so many are
backfilled, and the others begin with the log. Each line has the seconds of planning (the task `prepare`)
and of the whole run, and the Spark applications by kind. It then has mapped tasks, statements of the control store and
questions to the source. In the end every target that was backfilled must be its table.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

HOME = Path(tempfile.mkdtemp(prefix="tidemark-many-"))
STARTED = HOME / "started"
os.environ.update(
    AIRFLOW_HOME=str(HOME),
    AIRFLOW__CORE__DAGS_FOLDER=str(HOME / "dags"),
    AIRFLOW__CORE__LOAD_EXAMPLES="False",
    TIDEMARK_SPARK_MASTER="local[2]",
    TIDEMARK_SPARK_MODE="submit",
    TIDEMARK_LAKE_ROOT=str(HOME / "lake"),
    TIDEMARK_CONTROL_STORE=f"sqlite:///{HOME}/tidemark.db",
    PYSPARK_PYTHON=sys.executable,
)
(HOME / "dags").mkdir()

import sqlalchemy as sa  # noqa: E402

from tests.airflow_database import put_metadata_database  # noqa: E402
from tests.benchmarks.change_sets import AS_IN_PRODUCTION  # noqa: E402
from tests.dag_runs import run_registered  # noqa: E402
from tests.databases.mariadb import PASSWORD, USER, BinlogServer, running_mariadb  # noqa: E402
from tests.warm_spark import put_in_place  # noqa: E402

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from tidemark.replication.model.replication import ReplicatedObject

NAME = "many"
ROWS = 10  # of each table


@dataclass(frozen=True)
class Run:
    """The cost of a run. `applications`: starts of Spark, by the kind of their job; `mapped`: tasks."""

    planning: float
    seconds: float
    applications: Mapping[str, int]
    mapped: int
    statements: int
    questions: int

    @property
    def line(self) -> str:
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.applications.items()) or "none"
        counts = f"{self.mapped} | {self.statements:,} | {self.questions:,}"
        return f"{self.planning:.1f} | {self.seconds:.1f} | {kinds} | {counts}"


def name_of(number: int, backfilled: int) -> str:
    """A name that one pattern fits, if the table begins with the log."""
    return f"{'a' if number < backfilled else 'b'}{number:04}"


def fill(server: BinlogServer, database: str, tables: int, backfilled: int) -> None:
    connection = server.connection(database)
    numbers = ", ".join(f"({n}, 'name {n}', {n}.5, '2026-01-01')" for n in range(ROWS))
    with connection.cursor() as cursor:
        for number in range(tables):
            columns = "id INT PRIMARY KEY, name VARCHAR(40), amount DECIMAL(12,2), changed DATETIME"
            cursor.execute(f"CREATE TABLE {name_of(number, backfilled)} ({columns})")
            cursor.execute(f"INSERT INTO {name_of(number, backfilled)} VALUES {numbers}")
    connection.commit()
    connection.close()


def change(server: BinlogServer, database: str, number: int, names: Sequence[str]) -> None:
    """An update, a new row and one that goes, in each of the tables."""
    connection = server.connection(database)
    with connection.cursor() as cursor:
        for name in names:
            cursor.execute(f"UPDATE {name} SET amount = amount + 1 WHERE id < 5")
            cursor.execute(f"INSERT INTO {name} VALUES ({100 + number}, 'new', 0, NOW())")
            cursor.execute(f"DELETE FROM {name} WHERE id = {5 + number}")
    connection.commit()
    connection.close()


def dag_of(database: str) -> DAG:
    from airflow.sdk import DAG

    from tidemark.operators.replications import CreateReplicationOperator
    from tidemark.task_groups.replicate import replicate

    with DAG("replicate_many", schedule=None, max_active_runs=3) as dag:
        create = CreateReplicationOperator(
            task_id="create",
            replication=NAME,
            source_conn_id="source",
            target="lake",
            include=[f"{database}.*"],
            options={"backfill_exclude": [f"{database}.b*"]},
        )
        create >> replicate("replicate", replication=NAME)
    return dag


class Measured:
    """Runs of the DAG, with counts of what each asked for."""

    def __init__(self, server: BinlogServer, dag: DAG) -> None:
        self._server, self._dag, self._statements = server, dag, 0
        sa.event.listen(sa.engine.Engine, "before_cursor_execute", self._count)

    def _count(self, connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        self._statements += str(connection.engine.url).endswith("tidemark.db") and not statement.startswith("PRAGMA")

    def _questions(self) -> int:
        return int(self._server.sql("SHOW GLOBAL STATUS LIKE 'Questions'")[0][1])

    def run(self, number: int) -> Run:
        """Ends the benchmark if the run fails."""
        STARTED.write_text("")
        self._statements, asked, began = 0, self._questions(), time.monotonic()
        done = run_registered(self._dag, logical_date=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=number))
        seconds = time.monotonic() - began
        if str(done.state) != "success":
            sys.exit(f"run {number} ended as {done.state}")
        tasks = {(one.task_id, one.map_index): one for one in done.get_task_instances()}
        plan = tasks["replicate.prepare", -1]
        return Run(
            planning=(plan.end_date - plan.start_date).total_seconds(),
            seconds=seconds,
            applications=Counter(kinds_of_applications()),
            mapped=sum(index >= 0 for _, index in tasks),
            statements=self._statements,
            questions=self._questions() - asked - 1,
        )


def kinds_of_applications() -> Iterator[str]:
    """The kind of the job of each spark-submit since the file was emptied."""
    yield from (line.removeprefix("kind: ") for line in STARTED.read_text().splitlines() if line.startswith("kind: "))


def stored_rows() -> dict[str, int]:
    """The rows of each table of the control store that has some."""
    engine = sa.create_engine(os.environ["TIDEMARK_CONTROL_STORE"])
    with engine.connect() as connection:
        names = sa.inspect(connection).get_table_names()
        counted = {name: connection.execute(sa.text(f'SELECT count(*) FROM "{name}"')).scalar_one() for name in names}
    return {name: count for name, count in counted.items() if count}


def require_same(server: BinlogServer, database: str, objects: tuple[ReplicatedObject, ...]) -> None:
    """Raises AssertionError where a target is not its table."""
    from tidemark.testing import local_spark

    spark = local_spark(memory="3g", more={**AS_IN_PRODUCTION, "spark.databricks.delta.delta.log.cacheSize": "50"})
    for one in objects:
        names = ("id", "name", "amount", "changed")
        target = spark.read.format("delta").load(one.target.path.removeprefix("file://")).select(*names).collect()
        source = server.sql(f"SELECT {', '.join(names)} FROM {one.name.table}", database)
        assert sorted(map(tuple, target)) == sorted(source), one.name.text


def put_counting_submit() -> None:
    """Notes each start of an application."""
    real = Path(sys.executable).parent / "spark-submit"
    kind = "import json, sys; print('kind:', json.load(open(sys.argv[1]))['kind'])"
    note = f'{sys.executable} -c "{kind}" "$spec" >> {STARTED}'
    put_in_place(HOME / "bin" / "spark-submit", STARTED, f'{note}; exec {real} "$@"')
    os.environ["PATH"] = os.pathsep.join((str(HOME / "bin"), str(real.parent), os.environ["PATH"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--changed", type=int, default=20)
    parser.add_argument("--backfilled", type=int, help="all, if it is left out")
    parser.add_argument("--quiet", type=int, default=3, help="runs without a change")
    parser.add_argument("--rounds", type=int, default=3, help="runs after a change")
    given = parser.parse_args()
    put_counting_submit()
    put_metadata_database(HOME)
    from tidemark.control.store import ControlStore
    from tidemark.replication.worker.objects import objects_of

    with running_mariadb() as server:
        database = server.new_database()
        backfilled = given.tables if given.backfilled is None else given.backfilled
        names = [name_of(number, backfilled) for number in range(given.tables)]
        fill(server, database, given.tables, backfilled)
        source = {"conn_type": "mysql", "host": "127.0.0.1", "port": server.port, "login": USER, "password": PASSWORD}
        os.environ["AIRFLOW_CONN_SOURCE"] = json.dumps(source)
        measured = Measured(server, dag_of(database))
        found = {"first": [measured.run(0)]}
        print(f"first: {found['first'][0].line}\nrows of the store: {stored_rows()}", flush=True)
        found["quiet"] = [measured.run(1 + number) for number in range(given.quiet)]
        found["changed"] = []
        for number in range(given.rounds):
            change(server, database, number, names[: given.changed])
            found["changed"].append(measured.run(100 + number))
        for kind, runs in found.items():
            for one in runs:
                print(f"{kind}: {one.line}")
            middle = statistics.median(one.seconds for one in runs), statistics.median(one.planning for one in runs)
            print(f"{kind}, medians: run {middle[0]:.1f} s, planning {middle[1]:.1f} s", flush=True)
        print(f"rows of the store: {stored_rows()}")
        objects = objects_of(ControlStore(os.environ["TIDEMARK_CONTROL_STORE"]), NAME)
        require_same(server, database, objects[:backfilled])
        print(f"{backfilled} targets are their tables")


if __name__ == "__main__":
    main()
