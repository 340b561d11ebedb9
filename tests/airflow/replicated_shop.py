"""A shop's PostgreSQL that is replicated by tasks: its database, its connection, a writer, and how to compare."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.airflow.shop_writing import writing
from tests.postgresql import PASSWORD, USER, PostgresServer

DAGS = Path(__file__).parents[2] / "dags"
sys.path.insert(0, str(DAGS))

from replication.compare import COLUMNS, Comparison, rows_of_target  # noqa: E402 - beside the DAGs that use it
from replication.postgresql.journal import compare  # noqa: E402
from replication.postgresql.shop import fill, make_shop  # noqa: E402
from replication.postgresql.writer import Writer  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.replication.worker.status import ReplicationStatus

__all__ = ["CONN_ID", "DAGS", "REPLICATION", "ReplicatedShop", "events_of"]

CONN_ID, REPLICATION = "shop_database", "shop"


@dataclass
class ReplicatedShop:
    """A database of its own on the server, with the shop in it, and the Airflow connection that leads there."""

    server: PostgresServer
    database: str
    hook: TidemarkHook

    @classmethod
    def at(
        cls, server: PostgresServer, root: Path, set_env: Callable[[str, str], None], *, orders: int = 300
    ) -> ReplicatedShop:
        from tidemark.hooks.tidemark import TidemarkHook

        shop = cls(server, server.new_database(), TidemarkHook())
        with shop.connected() as connection:
            make_shop(connection)
            fill(connection, orders=orders)
        source = {"conn_type": "postgres", "host": "127.0.0.1", "port": server.port, "schema": shop.database}
        set_env("AIRFLOW_CONN_SHOP_DATABASE", json.dumps({**source, "login": USER, "password": PASSWORD}))
        set_env("TIDEMARK_LAKE_ROOT", str(root / "lake"))
        set_env("TIDEMARK_CONTROL_STORE", f"sqlite:///{root}/control.db")
        return shop

    @contextmanager
    def connected(self) -> Iterator[Any]:
        import psycopg2

        connection = psycopg2.connect(
            host="127.0.0.1", port=self.server.port, user=USER, password=PASSWORD, dbname=self.database
        )
        connection.autocommit = True
        try:
            yield connection
        finally:
            connection.close()

    @contextmanager
    def written_to(self, seed: int = 0) -> Iterator[Writer]:
        """A writer changes the shop for as long as the context lasts."""
        with self.connected() as connection, writing(Writer(connection, seed=seed, pause=0.05)) as writer:
            yield writer

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        return self.server.sql(text, self.database)

    def change(self, text: str) -> None:
        """One statement by hand, told to the journal as the writer tells of its own."""
        with self.connected() as connection, connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(text)
            cursor.execute("SELECT txid_current()")
            (transaction,) = cursor.fetchone()
            cursor.execute("COMMIT")
            cursor.execute("INSERT INTO journal.commits VALUES (%s, pg_current_wal_lsn())", (transaction,))

    def in_source(self) -> tuple[list[str], list[str]]:
        """Slots and publications that replications of this database have there now."""
        slots = self.sql("SELECT slot_name FROM pg_replication_slots WHERE database = current_database()")
        return sorted(str(one[0]) for one in slots), sorted(
            str(one[0]) for one in self.sql("SELECT pubname FROM pg_publication")
        )

    def status(self, name: str = REPLICATION) -> ReplicationStatus:
        from tidemark.replication.worker.status import describe

        return describe(self.hook.open_store(), name)

    def require_same(self, spark: SparkSession) -> dict[str, int]:
        """Rows of each target, all of which are those of its table."""
        compared = self.compared(spark)
        assert {name: one.differs for name, one in compared.items()} == dict.fromkeys(compared, 0)
        return {name: one.target for name, one in compared.items()}

    def compared(self, spark: SparkSession, name: str = REPLICATION) -> dict[str, Comparison]:
        """Each target against its table as of the position up to which it was written."""
        from tidemark.replication.planning.positions import lsn_of, lsn_text
        from tidemark.replication.worker.objects import objects_of

        found = {}
        with self.connected() as connection:
            for one in objects_of(self.hook.open_store(), name):
                assert one.applied is not None
                table = one.name.table
                frame = spark.read.format("delta").load(one.target.path.removeprefix("file://"))
                rows = [row.asDict() for row in frame.select(*COLUMNS[table]).collect()]
                position = lsn_text(lsn_of(one.applied))
                found[table] = compare(connection, table, position, rows_of_target(table, rows))
        return found


def events_of(replication: str, name: str, *, dag_id: str = "replicate_database") -> list[tuple[str, str]]:
    """Kind and run of the events of an object's asset, in order."""
    from airflow.models.asset import AssetEvent, AssetModel  # noqa: TID251 - a test looks from outside
    from airflow.utils.session import create_session

    from tidemark.assets import replicated_asset

    with create_session() as session:
        found = (
            session.query(AssetEvent)
            .join(AssetModel, AssetModel.id == AssetEvent.asset_id)
            .filter(AssetModel.uri == replicated_asset(replication, name).uri, AssetEvent.source_dag_id == dag_id)
            .order_by(AssetEvent.id)
        )
        return [(str(event.extra["kind"]), str(event.source_run_id)) for event in found]
