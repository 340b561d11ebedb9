"""TPC-H data in Delta tables, and its two refresh functions from our own seed: orders that come, orders that go."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidemark.lake.delta_log import DeltaLog
from tidemark.model.streams import TableRef

__all__ = ["TABLES", "Tpch", "TpchTable"]

TABLES = ("customer", "orders", "lineitem", "supplier", "nation", "region", "part")
KEYS = {"orders": "o_orderkey", "lineitem": "l_orderkey"}
PROPERTIES = {"delta.enableRowTracking": "true", "delta.enableDeletionVectors": "true"}


@dataclass(frozen=True)
class TpchTable:
    """A table by its name in the queries."""

    name: str
    path: str

    @property
    def ref(self) -> TableRef:
        log = DeltaLog.open(self.path)
        return TableRef(self.name, log.uri, log.state().table_id)

    @property
    def version(self) -> int:
        return DeltaLog.open(self.path).head()


class Tpch:
    """The tables of a scale. The last `held` of the orders, by key, wait for `come`, with their items. `before`: the
    versions of the tables as they were loaded.
    """

    def __init__(self, spark: SparkSession, home: Path, scale: float, *, held: float, files: int = 1) -> None:
        self.spark, self.home = spark, home
        self.tables = [TpchTable(name, str(home / name)) for name in TABLES]
        raw = home / "raw"
        command = [Path(sys.executable).parent / "tpchgen-cli", "parquet", "-s", str(scale), "--output-dir", str(raw)]
        subprocess.run([*command, f"--tables={','.join(TABLES)}"], check=True, capture_output=True)
        orders = self._raw("orders")
        count = orders.count()
        keys = [row[0] for row in orders.select("o_orderkey").sort("o_orderkey").collect()] if count < 10**6 else []
        self.first_held = self._key_at(orders, keys, 1 - held)
        self._orders, self._keys = orders, keys
        for name in TABLES:
            self._load(name, files)
        self.before = self.versions()

    def come(self, share: float) -> None:
        """RF1: so many of the held-back orders, in the order of their keys."""
        low, self.first_held = self.first_held, self._key_at(self._orders, self._keys, self._share_before() + share)
        for name, key in KEYS.items():
            rows = self._raw(name).where((F.col(key) >= low) & (F.col(key) < self.first_held))
            rows.write.format("delta").mode("append").save(str(self.home / name))

    def go(self, share: float) -> None:
        """RF2: the oldest orders leave, as many."""
        path = self.home / "orders"
        keys = self.spark.read.format("delta").load(str(path)).select("o_orderkey")
        last = keys.approxQuantile("o_orderkey", [share], 0.0001)[0]
        for name, key in KEYS.items():
            self.spark.sql(f"DELETE FROM delta.`{self.home / name}` WHERE {key} <= {int(last)}")

    def versions(self) -> list[int]:
        return [table.version for table in self.tables]

    def _raw(self, name: str) -> DataFrame:
        return self.spark.read.parquet(str(self.home / "raw" / f"{name}.parquet"))

    def _share_before(self) -> float:
        if self._keys:
            return sum(key < self.first_held for key in self._keys) / len(self._keys)
        return float(self._orders.where(F.col("o_orderkey") < self.first_held).count() / self._orders.count())

    def _key_at(self, orders: DataFrame, keys: list[int], share: float) -> int:
        """The key with this share of the keys before it."""
        if share >= 1:
            return 1 << 62
        if keys:
            return keys[round(share * len(keys))]
        return int(orders.approxQuantile("o_orderkey", [share], 0.00001)[0])

    def _load(self, name: str, files: int) -> None:
        rows = self._raw(name)
        if name in KEYS:
            rows = rows.where(F.col(KEYS[name]) < self.first_held)
            rows = rows.repartitionByRange(files, KEYS[name]).sortWithinPartitions(KEYS[name])
        rows.write.format("delta").options(**PROPERTIES).save(str(self.home / name))
