"""A lake whose tables take rows of channels."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.table_templates import put_table
from tidemark.channels.driver.client import IngestClient
from tidemark.channels.driver.kernel import KernelEngine
from tidemark.channels.model.channels import ChannelRecord
from tidemark.channels.planning.listing import records_of
from tidemark.lake.delta_log import DeltaLog

__all__ = ["Landing"]

TRACKED = "TBLPROPERTIES ('delta.enableRowTracking' = 'true', 'delta.enableDeletionVectors' = 'true'{more})"


@dataclass
class Landing:
    """Tables by name below `root`; {t} in SQL stands for the one that is named."""

    spark: SparkSession
    root: Path
    clients: list[IngestClient] = field(default_factory=list)

    def uri(self, table: str) -> str:
        return f"file://{self.root}/{table}"

    def create(
        self, table: str = "orders", columns: str = "id BIGINT, name STRING", tail: str = "", **more: str
    ) -> None:
        settings = "".join(f", '{name.replace('__', '.')}' = '{value}'" for name, value in more.items())
        put_table(
            self.spark,
            self.root / table,
            f"CREATE TABLE {{t}} ({columns}) USING delta {tail} {TRACKED.format(more=settings)}",
        )

    def client(self, name: str = "app", **how: Any) -> IngestClient:
        """A client that nobody closes in time: its buffers are discarded at the end of the test."""
        how = {"history": False, **how}
        made = IngestClient(name, KernelEngine.of_session(self.spark), self.uri, options={}, **how)
        self.clients.append(made)
        return made

    def sql(self, text: str, table: str = "orders") -> list[Any]:
        return self.spark.sql(text.replace("{t}", f"delta.`{self.root / table}`")).collect()

    def rows(self, table: str = "orders", columns: str = "*") -> list[tuple[Any, ...]]:
        return sorted((tuple(row) for row in self.sql(f"SELECT {columns} FROM {{t}}", table)), key=repr)

    def log(self, table: str = "orders") -> DeltaLog:
        return DeltaLog.open(self.uri(table))

    def records(self, table: str = "orders") -> dict[str, ChannelRecord]:
        return records_of(self.log(table).state())

    def token(self, channel: str, table: str = "orders") -> str | None:
        record = self.records(table).get(channel)
        return record.offset_token if record is not None else None

    def close(self) -> None:
        for client in self.clients:
            client.discard()
