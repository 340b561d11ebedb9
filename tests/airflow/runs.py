"""What tests look at: tables of the lake, and what Airflow keeps of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.table_templates import put_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Lake", "Outcome"]


@dataclass(frozen=True)
class Lake:
    """Tables under the lake root by their names `schema.table`."""

    spark: SparkSession
    root: Path

    @classmethod
    def of_its_own(
        cls, spark: SparkSession, place: Path, setenv: Callable[[str, str], None], tables: Mapping[str, str]
    ) -> Lake:
        """A new lake below `place` for the default connection, with row-tracked tables: name → columns."""
        mine = cls(spark, place / "lake")
        for name, columns in tables.items():
            mine.create(name, columns, row_tracking=True)
        setenv("TIDEMARK_LAKE_ROOT", str(mine.root))
        setenv("TIDEMARK_CONTROL_STORE", f"sqlite:///{place}/control.db")
        return mine

    def create(self, name: str, columns: str, *, row_tracking: bool = False) -> None:
        properties = "TBLPROPERTIES ('delta.enableRowTracking' = 'true')" if row_tracking else ""
        put_table(
            self.spark, self.root / name.replace(".", "/"), f"CREATE TABLE {{t}} ({columns}) USING delta {properties}"
        )

    def sql_name(self, name: str) -> str:
        return f"delta.`{self.root / name.replace('.', '/')}`"

    def sql(self, text: str, table: str) -> None:
        self.spark.sql(text.format(t=self.sql_name(table)))

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        frame = self.spark.read.format("delta").load(str(self.root / name.replace(".", "/")))
        return sorted(tuple(row) for row in frame.collect())

    def version(self, name: str) -> int:
        return int(self.spark.sql(f"DESCRIBE HISTORY {self.sql_name(name)} LIMIT 1").collect()[0].version)


@dataclass(frozen=True)
class Outcome:
    """What Airflow keeps of a run."""

    run: Any

    @property
    def state(self) -> str:
        return str(self.run.state)

    def task(self, task_id: str) -> str:
        return str(self.run.get_task_instance(task_id).state)

    def returned(self, task_id: str, key: str = "return_value") -> Any:
        from airflow.models.xcom import XComModel  # noqa: TID251 - a test looks from outside
        from airflow.utils.session import create_session

        with create_session() as session:
            found = session.query(XComModel).filter_by(run_id=self.run.run_id, dag_id=self.run.dag_id, task_id=task_id)
            return next(XComModel.deserialize_value(one) for one in found if one.key == key)

    def events(self, stream: str) -> list[dict[str, Any]]:
        """Extras of the events of the stream's asset, in order."""
        from airflow.models.asset import AssetEvent, AssetModel  # noqa: TID251 - a test looks from outside
        from airflow.utils.session import create_session

        from tidemark.assets import stream_asset

        with create_session() as session:
            found = (
                session.query(AssetEvent)
                .join(AssetModel, AssetModel.id == AssetEvent.asset_id)
                .filter(AssetModel.uri == stream_asset(stream).uri, AssetEvent.source_run_id == self.run.run_id)
                .filter(AssetEvent.source_dag_id == self.run.dag_id)
                .order_by(AssetEvent.id)
            )
            return [dict(event.extra) for event in found]
