"""Real Delta logs on disk without Spark: enough of a table for everything that reads logs."""

from __future__ import annotations

import json
import os
import shutil
import threading
import uuid
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["SyntheticTable"]

Change = tuple[str, int]  # stream uid, source version
SCHEMA = json.dumps({"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]})
STRINGS = pa.map_(pa.string(), pa.string())
PROTOCOL = pa.struct(
    {
        "minReaderVersion": pa.int32(),
        "minWriterVersion": pa.int32(),
        "readerFeatures": pa.list_(pa.string()),
        "writerFeatures": pa.list_(pa.string()),
    }
)
METADATA = pa.struct(
    {
        "id": pa.string(),
        "format": pa.struct({"provider": pa.string(), "options": STRINGS}),
        "schemaString": pa.string(),
        "partitionColumns": pa.list_(pa.string()),
        "configuration": STRINGS,
        "createdTime": pa.int64(),
    }
)
ADD = pa.struct(
    {
        "path": pa.string(),
        "partitionValues": STRINGS,
        "size": pa.int64(),
        "modificationTime": pa.int64(),
        "dataChange": pa.bool_(),
        "stats": pa.string(),
        "baseRowId": pa.int64(),
        "defaultRowCommitVersion": pa.int64(),
    }
)
CHECKPOINT = pa.schema({"protocol": PROTOCOL, "metaData": METADATA, "add": ADD})


class SyntheticTable:
    """A Delta table whose files are empty and whose file names say which changes they hold.

    Commits follow Delta's rules: a version is taken by creating its file; a write with a transaction number that is not
    higher than the newest entry of its application is skipped silently.
    """

    def __init__(self, path: Path, configuration: Mapping[str, str] | None = None) -> None:
        self.path = path
        self.log = path / "_delta_log"
        self.configuration = {"delta.enableRowTracking": "true", **(configuration or {})}
        self.forgotten: set[str] = set()  # applications whose entries have expired
        self.table_id = ""
        self.written: dict[int, list[dict[str, Any]]] = {}  # what the log on disk says, by version
        self.one_at_a_time = threading.RLock()
        self.create()

    @property
    def uri(self) -> str:
        return f"file://{self.path}"

    def create(self) -> None:
        self.log.mkdir(parents=True)
        self.table_id = str(uuid.uuid4())
        self._commit([self._protocol(), self._metadata()], operation="CREATE TABLE")

    def head(self) -> int:
        return max(self.written)

    def reload(self) -> None:
        """See what another process has committed."""
        files = sorted(self.log.glob("*.json"))
        self.written = {int(f.stem): [json.loads(line) for line in f.read_text().splitlines()] for f in files}

    def append(self, rows: int = 1) -> int:
        """A commit with changed data; returns its version."""
        return self._commit([_add(f"part-{uuid.uuid4()}.parquet", rows)], operation="WRITE")

    def truncate(self, at: float) -> int:
        """A commit that removes every file, `at` seconds since 1970."""
        when = {"dataChange": True, "deletionTimestamp": int(at * 1000), "size": 1, "partitionValues": {}}
        ids = {"baseRowId": 0, "defaultRowCommitVersion": 0}
        removes = [{"remove": {"path": path, **when, **ids}} for path in sorted(self._files())]
        return self._commit(removes, operation="TRUNCATE")

    def optimize(self) -> int:
        """A commit that changes no data."""
        return self._commit([_add(f"part-{uuid.uuid4()}.parquet", 1, data_change=False)], operation="OPTIMIZE")

    def rewrite(self, operation: str = "WRITE") -> int:
        """A commit that moves all rows into one file and says that it changes none."""
        of_old = {"dataChange": False, "deletionTimestamp": 0, "size": 1, "partitionValues": {}}
        removes = [{"remove": {"path": path, **of_old}} for path in sorted(self._files())]
        return self._commit([*removes, _add(f"part-{uuid.uuid4()}.parquet", 1, data_change=False)], operation=operation)

    def configure(self, **configuration: str) -> int:
        self.configuration.update({name.replace("__", "."): value for name, value in configuration.items()})
        return self._commit([self._metadata()], operation="SET TBLPROPERTIES")

    def write(self, app_id: str, txn_version: int, mark: str, changes: list[Change]) -> bool:
        """An exactly-once write: False if Delta skips it, since its number is not new."""
        files = [_add(f"change-{uid}-{version}-{uuid.uuid4()}.parquet", 1) for uid, version in changes]
        txn = {"txn": {"appId": app_id, "version": txn_version, "lastUpdated": 0}}
        metrics = {"numOutputRows": str(len(files))}
        with self.one_at_a_time:
            if self.transactions().get(app_id, -1) >= txn_version:
                return False
            try:
                self._commit([txn, *files], operation="WRITE", user_metadata=mark, metrics=metrics)
            except FileExistsError:  # by another process
                self.reload()
                return self.write(app_id, txn_version, mark, changes)
            self.forgotten.discard(app_id)
            return True

    def restore(self, version: int) -> int:
        """RESTORE TO VERSION: rows go back, transaction entries stay."""
        wanted, present = self._files(version), self._files()
        removes = [{"remove": {"path": path, "dataChange": True, "deletionTimestamp": 0}} for path in present - wanted]
        adds = [_add(path, 1) for path in wanted - present]
        parameters = {"version": str(version), "timestamp": None}
        return self._commit([*removes, *adds], operation="RESTORE", parameters=parameters)

    def replace(self) -> int:
        """CREATE OR REPLACE TABLE: another id, no rows, the log goes on, transaction entries stay."""
        self.table_id = str(uuid.uuid4())
        removes = [{"remove": {"path": path, "dataChange": True, "deletionTimestamp": 0}} for path in self._files()]
        return self._commit([self._metadata(), *removes], operation="CREATE OR REPLACE TABLE")

    def recreate(self) -> None:
        """DROP, then CREATE at the same path: another id, an empty log."""
        self.drop()
        self.forgotten.clear()
        self.create()

    def drop(self) -> None:
        shutil.rmtree(self.path)
        self.written.clear()

    def expire(self) -> None:
        """delta.setTransactionRetentionDuration has run out for every entry."""
        self.forgotten |= set(self.transactions())

    def clean_up(self, before: int) -> None:
        """Log cleanup: commits below `before` are gone."""
        for file in self.log.glob("*.json"):
            if int(file.stem) < before:
                file.unlink()

    def checkpoint(self) -> None:
        """A classic checkpoint of the newest version: what log cleanup needs to go on."""
        rows = _as_maps([self._protocol(), self._metadata(), *(_add(path, 1) for path in sorted(self._files()))])
        version = self.head()
        table = pa.Table.from_pylist(rows, CHECKPOINT)
        pq.write_table(table, self.log / f"{version:020d}.checkpoint.parquet")
        (self.log / "_last_checkpoint").write_text(json.dumps({"version": version, "size": len(rows)}))

    def set_time(self, version: int, timestamp: float) -> None:
        os.utime(self.log / f"{version:020d}.json", (timestamp, timestamp))

    def transactions(self) -> dict[str, int]:
        """The newest `txn` entry of each application."""
        entries: dict[str, int] = {}
        for _, actions in self._actions():
            for txn in (action["txn"] for action in actions if "txn" in action):
                entries[txn["appId"]] = max(entries.get(txn["appId"], -1), txn["version"])
        return {app: version for app, version in entries.items() if app not in self.forgotten}

    def contents(self) -> Counter[Change]:
        """How often each change stands in the table now."""
        named = (path.split("-", 1)[1].rsplit("-", 6) for path in self._files() if path.startswith("change-"))
        return Counter((parts[0], int(parts[1])) for parts in named)

    def marks(self) -> list[str]:
        """Every commit's userMetadata, in order."""
        infos = (action["commitInfo"] for _, actions in self._actions() for action in actions if "commitInfo" in action)
        return [info["userMetadata"] for info in infos if info.get("userMetadata")]

    def _files(self, through: int | None = None) -> set[str]:
        files: set[str] = set()
        for version, actions in self._actions():
            if through is None or version <= through:
                files |= {action["add"]["path"] for action in actions if "add" in action}
                files -= {action["remove"]["path"] for action in actions if "remove" in action}
        return files

    def _actions(self) -> list[tuple[int, list[dict[str, Any]]]]:
        return sorted(self.written.items())

    def _protocol(self) -> dict[str, Any]:
        features = ["rowTracking", "domainMetadata", "deletionVectors"]
        versions = {"minReaderVersion": 3, "minWriterVersion": 7}
        return {"protocol": {**versions, "readerFeatures": ["deletionVectors"], "writerFeatures": features}}

    def _metadata(self) -> dict[str, Any]:
        return {
            "metaData": {
                "id": self.table_id,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": SCHEMA,
                "partitionColumns": [],
                "configuration": self.configuration,
                "createdTime": 0,
            }
        }

    def _commit(
        self,
        actions: list[dict[str, Any]],
        *,
        operation: str,
        user_metadata: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        metrics: Mapping[str, str] | None = None,
    ) -> int:
        info = {"timestamp": 0, "operation": operation, "operationParameters": parameters or {}}
        info |= {"operationMetrics": metrics or {}} | ({"userMetadata": user_metadata} if user_metadata else {})
        with self.one_at_a_time:
            version = self.head() + 1 if self.written else 0
            half = self.log / f".{version:020d}.{uuid.uuid4().hex}"
            half.write_text("".join(json.dumps(a) + "\n" for a in [{"commitInfo": info}, *actions]), encoding="utf-8")
            os.link(half, self.log / f"{version:020d}.json")  # whole at once, and only if there is none
            half.unlink()
            self.written[version] = [{"commitInfo": info}, *actions]
        return version


def _add(path: str, rows: int, *, data_change: bool = True) -> dict[str, Any]:
    return {
        "add": {
            "path": path,
            "partitionValues": {},
            "size": 1,
            "modificationTime": 0,
            "dataChange": data_change,
            "stats": json.dumps({"numRecords": rows}),
            "baseRowId": 0,
            "defaultRowCommitVersion": 0,
        }
    }


def _as_maps(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Parquet keeps mappings as lists of pairs."""
    copied: list[dict[str, Any]] = json.loads(json.dumps(rows))
    for row in copied:
        if "metaData" in row:
            row["metaData"]["configuration"] = list(row["metaData"]["configuration"].items())
            row["metaData"]["format"]["options"] = []
        if "add" in row:
            row["add"]["partitionValues"] = []
    return copied
