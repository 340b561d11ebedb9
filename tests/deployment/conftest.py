"""One deployment and one shop for all tests of the room; the tests run one after the other and build on each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.deployment.airflow_deployment import Deployment, running_airflow, wait_for
from tests.deployment.spark_setups import SETUPS, SparkSetup
from tests.postgresql import PostgresServer, postgresql_or_skip
from tests.tiers import some
from tidemark.control.store import ControlStore
from tidemark.delivery.model.marks import MarkKind, parse_mark
from tidemark.lake.delta_log import DeltaLog
from tidemark.streams.worker.streams import get_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ELSEWHERE = ("standalone", "connect")


@pytest.fixture(scope="module")
def store_server() -> Iterator[PostgresServer]:
    """A server for the control store alone, so that it can go away while Airflow's own database stays."""
    with postgresql_or_skip() as server:
        yield server


@pytest.fixture(scope="module", params=some(("local", *ELSEWHERE), now=("local",)))
def spark_setup(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSetup]:
    """Where the tasks have their Spark; elsewhere than beside the task by `make test-all`."""
    with SETUPS[request.param](tmp_path_factory.mktemp(request.param)) as running:
        yield running


@pytest.fixture(scope="module")
def deployment(
    spark_setup: SparkSetup,
    postgresql: PostgresServer,
    store_server: PostgresServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Deployment]:
    home = tmp_path_factory.mktemp("airflow")
    environment = {
        **spark_setup.environment,
        "TIDEMARK_LAKE_ROOT": str(home / "lake"),
        "SHOP_HOLD": str(home / "hold"),
        "TIDEMARK_DRIVER_ENVIRONMENT": "SHOP_HOLD, COVERAGE_*",
    }
    urls = (server.url(server.new_database()) for server in (postgresql, store_server))
    with running_airflow(home, *urls, environment) as running:
        yield running


@pytest.fixture(scope="module")
def shop(deployment: Deployment, spark: SparkSession) -> Shop:
    made = Shop(spark, deployment)
    made.open()
    return made


@dataclass
class Shop:
    """A source whose orders change, and what its stream is delivered to."""

    spark: SparkSession
    deployment: Deployment
    orders: int = 0

    def open(self) -> None:
        self._sql(
            "CREATE TABLE {orders} (id INT, name STRING) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
        )
        self._sql("CREATE TABLE {mirror} (id INT, name STRING) USING delta")
        self._sql("CREATE TABLE {history} (id INT, name STRING, action STRING) USING delta")
        assert self.deployment.finish("create", self.deployment.trigger("create")) == "success"

    def trade(self) -> None:
        """Two orders come, one of an earlier day changes, one goes."""
        first = self.orders + 1
        self.orders += 2
        self._sql(f"INSERT INTO {{orders}} VALUES ({first}, 'new'), ({first + 1}, 'new')")
        self._sql(f"UPDATE {{orders}} SET name = 'sent {first}' WHERE id = {first - 2}")
        self._sql(f"DELETE FROM {{orders}} WHERE id = {first - 1}")

    def held_run(self, dag_id: str = "by_hand") -> str:
        """The id of a run that was triggered on new orders and is held between its two writes, until `release`."""
        self.trade()
        self._hold.touch()
        self._reached.unlink(missing_ok=True)
        run = self.deployment.trigger(dag_id)
        wait_for(self._reached.exists, 150, self.deployment.logs)
        return run

    def release(self) -> None:
        self._hold.unlink(missing_ok=True)

    def is_delivered(self) -> bool:
        """Whether the offset is at the source's head."""
        return self._offset() == self._log("orders").head()

    def check(self) -> None:
        """The mirror is the source as of the offset, the history adds up to it, each window was written once."""
        source = f"(SELECT * FROM {self._name('orders')} VERSION AS OF {self._offset()})"
        expected = self._rows(f"SELECT id, name FROM {source}")
        assert self._rows(f"SELECT id, name FROM {self._name('mirror')}") == expected
        signed = f"SELECT id, name, sum(if(action = 'INSERT', 1, -1)) n FROM {self._name('history')} GROUP BY ALL"
        assert self._rows(f"SELECT id, name FROM ({signed}) WHERE n <> 0") == expected
        assert self._rows(f"SELECT id, name FROM ({signed}) WHERE n NOT IN (0, 1)") == []
        assert self._windows("mirror") == self._windows("history")

    def _windows(self, table: str) -> list[Any]:
        """Each window that was written, in order; one that was written twice would stand here twice."""
        marks = [parse_mark(commit.user_metadata) for commit in self._log(table).commits(0, self._log(table).head())]
        windows = [mark.windows for mark in marks if mark is not None and mark.kind is MarkKind.WRITE]
        assert len(windows) == len(set(windows))
        return windows

    def _offset(self) -> int:
        return get_stream(ControlStore(self.deployment.store_url), "orders").offset.version

    def _log(self, table: str) -> DeltaLog:
        return DeltaLog.open(str(self._path(table)))

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in self.spark.sql(query).collect())

    def _sql(self, text: str) -> None:
        self.spark.sql(text.format(**{table: self._name(table) for table in ("orders", "mirror", "history")}))

    def _name(self, table: str) -> str:
        return f"delta.`{self._path(table)}`"

    def _path(self, table: str) -> Path:
        return self.deployment.home / "lake" / "shop" / table

    @property
    def _hold(self) -> Path:
        return self.deployment.home / "hold"

    @property
    def _reached(self) -> Path:
        return self.deployment.home / "hold.reached"
