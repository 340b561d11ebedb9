"""A shop's MariaDB that is replicated by tasks: its connection, its writer, and how to compare."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.airflow.shop_writing import writing
from tests.databases.mariadb import PASSWORD, USER, BinlogServer

DAGS = Path(__file__).parents[2] / "dags"
sys.path.insert(0, str(DAGS))

from replication.compare import COLUMNS, Comparison, rows_of_target  # noqa: E402 - beside the DAGs that use it
from replication.mariadb.journal import NEVER, compare  # noqa: E402
from replication.mariadb.shop import fill, make_shop  # noqa: E402
from replication.mariadb.writer import Writer  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidemark.hooks.tidemark import TidemarkHook
    from tidemark.replication.worker.status import ReplicationStatus

__all__ = ["REPLICATION", "MariaDBShop"]

REPLICATION = "shop"


@dataclass
class MariaDBShop:
    """The shop on a server, and the Airflow connection of type `mysql` that leads there. `copied`: the transactions
    that ran while a table was copied.
    """

    server: BinlogServer
    hook: TidemarkHook
    copied: dict[str, range] = field(default_factory=dict)

    @classmethod
    def at(
        cls, server: BinlogServer, root: Path, set_env: Callable[[str, str], None], *, orders: int = 60
    ) -> MariaDBShop:
        """A new one; an earlier one on the server is dropped."""
        from tidemark.hooks.tidemark import TidemarkHook

        shop = cls(server, TidemarkHook())
        for database in ("shop", "journal"):
            server.sql(f"DROP DATABASE IF EXISTS {database}")
        with shop.connected() as connection:
            make_shop(connection)
            fill(connection, orders=orders)
        source = {"conn_type": "mysql", "host": "127.0.0.1", "port": server.port, "login": USER, "password": PASSWORD}
        set_env("AIRFLOW_CONN_SHOP_DATABASE", json.dumps(source))
        set_env("TIDEMARK_LAKE_ROOT", str(root / "lake"))
        set_env("TIDEMARK_CONTROL_STORE", f"sqlite:///{root}/control.db")
        return shop

    @contextmanager
    def connected(self) -> Iterator[Any]:
        connection = self.server.connection()
        connection.autocommit(True)
        try:
            yield connection
        finally:
            connection.close()

    @contextmanager
    def written_to(self, seed: int = 0) -> Iterator[Writer]:
        """A writer changes the shop for as long as the context lasts."""
        with self.connected() as connection, writing(Writer(connection, seed=seed, pause=0.05)) as writer:
            yield writer

    @contextmanager
    def copying(self, writer: Writer, *tables: str) -> Iterator[None]:
        """Tables are copied while the context lasts."""
        first = writer.number
        yield
        self.copied |= dict.fromkeys(tables, range(first, writer.number + 1))

    def status(self) -> ReplicationStatus:
        from tidemark.replication.worker.status import describe

        return describe(self.hook.open_store(), REPLICATION)

    def compared(self, spark: SparkSession) -> Mapping[str, Comparison]:
        """Each target against its table as of the position up to which it was written."""
        from tidemark.replication.planning.positions import place_of
        from tidemark.replication.worker.objects import objects_of

        found = {}
        with self.connected() as connection:
            for one in objects_of(self.hook.open_store(), REPLICATION):
                assert one.applied is not None
                place, table = place_of(one.applied), one.name.table
                assert place is not None
                frame = spark.read.format("delta").load(one.target.path.removeprefix("file://"))
                rows = rows_of_target(table, [row.asDict() for row in frame.select(*COLUMNS[table]).collect()])
                copied = self.copied.get(table, NEVER)
                found[table] = compare(connection, table, (place.number, place.offset), rows, copied)
        return found

    def require_same(self, spark: SparkSession) -> Mapping[str, Comparison]:
        """Every row of each target is one of its table, and nothing lacks. Returns what was compared."""
        compared = self.compared(spark)
        assert {name: one.differs for name, one in compared.items()} == dict.fromkeys(compared, 0)
        return compared
