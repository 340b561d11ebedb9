"""Pipes without Spark: a directory, and queues whose data files PyArrow writes as a run of a pipe does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq

from tests.unit.lake.delta_directories import PROTOCOL, add, born, commit, metadata
from tidemark.control.store import ControlStore
from tidemark.pipes.worker import definitions
from tidemark.pipes.worker.pending import PendingFiles, PendingLooks, source_of

__all__ = ["Landing", "Queue"]


class Queue:
    """A pipe's table of files at `place`."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.version = 0
        self.added: list[tuple[str, str]] = []
        born(place)

    def put(
        self,
        event: str,
        *names: str,
        at: datetime | None = None,
        batches: Mapping[str, int] | None = None,
        source: str | None = None,
        batch: int | None = None,
        statement: str | None = None,
    ) -> None:
        """Commit an event of these files. `batches`: the numbers of the last plan and the last end. `batch`,
        `statement`: of the event.
        """
        at = at or datetime.now(UTC)
        self.version += 1
        day = f"day={at.date()}"
        path = f"{day}/part-{self.version}.parquet"
        (self.place / day).mkdir(exist_ok=True)
        rows = {"event": [event] * len(names), "file": list(names), "at": [at] * len(names), "size": [1] * len(names)}
        rows["source"] = [source] * len(names)
        types = [("event", pa.string()), ("file", pa.string()), ("at", pa.timestamp("us", "UTC")), ("size", pa.int64())]
        rows["batch"], rows["statement"] = [batch] * len(names), [statement] * len(names)
        types += [("source", pa.string()), ("batch", pa.int64()), ("statement", pa.string())]
        table = pa.table(rows, schema=pa.schema(types))
        pq.write_table(table, self.place / path, use_deprecated_int96_timestamps=True)
        numbers = [
            {"txn": {"appId": f"tidemark/files/id-1/{kind}", "version": n}} for kind, n in (batches or {}).items()
        ]
        self.added.append((path, str(at.date())))
        commit(self.place, self.version, add(path, partitionValues={"day": str(at.date())}), *numbers)

    def checkpoint(self, *, v2: bool = False) -> None:
        """Put a checkpoint in the place of the commits so far; a V2 one has the files in another file."""
        log = self.place / "_delta_log"
        name = f"{self.version:020d}.checkpoint"
        state = [PROTOCOL, metadata()]
        if v2:
            lines = [*state, {"checkpointMetadata": {"version": self.version}}]
            (log / f"{name}.{UUID(int=7)}.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
        else:
            partition = pa.map_(pa.string(), pa.string())
            kind = pa.struct([("path", pa.string()), ("partitionValues", partition)])
            adds = [{"path": path, "partitionValues": [("day", day)]} for path, day in self.added]
            rows = [None] * len(adds)
            columns = {
                "add": pa.array([None, None, *adds], kind),
                "protocol": pa.array([PROTOCOL["protocol"], None, *rows]),
                "metaData": pa.array([None, _without_empty(metadata()["metaData"]), *rows]),
            }
            pq.write_table(pa.table(columns), log / f"{name}.parquet")
        for version in range(self.version + 1):
            (log / f"{version:020d}.json").unlink()
        self.version += 1
        commit(self.place, self.version)


def _without_empty(body: dict[str, Any]) -> dict[str, Any]:
    """Parquet has no empty group."""
    return {**body, "configuration": {"a": "b"}}


class Landing:
    """The pipe `p` on the directory `in`, with its store and its queue."""

    def __init__(self, root: Path) -> None:
        self.files, self.queue_place = root / "in", root / "p__files"
        self.files.mkdir()
        self.store = ControlStore(f"sqlite:///{root}/control.db")
        self.looks = PendingLooks(clock=lambda: datetime.now(UTC))
        self.pipe("p", "PATTERN = '.*[.]csv'")

    def pipe(self, name: str, more: str, *, auto_ingest: bool = True) -> None:
        statement = f"COPY INTO a.b FROM '{self.files}/' FILE_FORMAT = (TYPE = CSV) {more}"
        queue = str(self.queue_place.with_name(f"{name}__files"))
        definitions.create_pipe(self.store, name, statement, queue=queue, auto_ingest=auto_ingest, by="a test")

    def put(self, *names: str) -> None:
        for name in names:
            place = self.files / name
            place.parent.mkdir(exist_ok=True, parents=True)
            place.write_text("1\n")

    def look(self, name: str = "p", list_files: bool | None = None, **more: float) -> PendingFiles:
        return self.looks.look(source_of(self.store, name, list_files=list_files), {}, **more)

    def names(self, name: str = "p", list_files: bool | None = None) -> list[str]:
        found: list[str] = self.look(name, list_files).names.to_pylist()
        return found
