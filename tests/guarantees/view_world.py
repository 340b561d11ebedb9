"""Views in the small world: their bases and kept tables are real logs, whose files are named after their rows."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from tidemark.materialized.model.definitions import KeptKind, KeptView, RefreshMode, TargetLag
from tidemark.materialized.model.jobs import Resolved, ResolveRequest
from tidemark.materialized.model.refreshes import Refresh, Refreshed
from tidemark.materialized.model.shapes import KeptShape
from tidemark.materialized.planning.shape import rows_shape
from tidemark.materialized.worker.defining import Lakes, ViewRequest, create_view
from tidemark.materialized.worker.reading import kept_read
from tidemark.materialized.worker.refresh import refresh_due, refresh_view
from tidemark.materialized.worker.views import get_view, view_history
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.statements import RefreshHow, Statement
from tidemark.model.streams import Addressing, TableRef, WindowKind
from tidemark.model.views import BASE, ViewQuery
from tidemark.streams.worker.opening import open_table
from tidemark.streams.worker.runtime import Runtime

from .drivers import Driver
from .synthetic_tables import SyntheticTable
from .world import World, key_of

__all__ = ["KeptTable", "ViewWorld"]

_ID = {"name": "id", "type": "long", "nullable": True, "metadata": {}}


class KeptTable(SyntheticTable):
    """A kept table, or a base whose columns change."""

    fields: tuple[dict[str, object], ...] = (_ID,)

    def with_columns(self, *fields: dict[str, object]) -> int:
        """ALTER TABLE: other columns."""
        self.fields = fields
        return self._commit([self._metadata()], operation="CHANGE COLUMN")

    def refresh(self, statement: Statement, mark: str, rows: Sequence[tuple[str, int]], *, whole: bool) -> None:
        """Exactly once, as Delta does it: rows are added, or replace all."""
        with self.one_at_a_time:
            if self.transactions().get(statement.app_id, -1) >= statement.txn_version:
                return
            removed = sorted(self._files()) if whole else []
            gone = {"dataChange": True, "deletionTimestamp": 0, "size": 1}
            self._commit(
                [
                    {"txn": {"appId": statement.app_id, "version": statement.txn_version, "lastUpdated": 0}},
                    *({"remove": {"path": path, **gone}} for path in removed),
                    *(self._row(base, version) for base, version in rows),
                ],
                operation="WRITE",
                user_metadata=mark,
                metrics={"numOutputRows": str(len(rows))},
            )

    def _row(self, base: str, version: int) -> dict[str, object]:
        from .synthetic_tables import _add

        return _add(f"change-{base}-{version}-{uuid.uuid4()}.parquet", 1)

    def _metadata(self) -> dict[str, dict[str, object]]:
        found = super()._metadata()
        found["metaData"]["schemaString"] = json.dumps({"type": "struct", "fields": list(self.fields)})
        return found


class RefreshDriver(Driver):
    """Writes the rows of a window: one for each version of each base, named by the base's number and the version."""

    def _put(self, statement: Statement, kind: object, changes: object) -> None:
        asked = statement.write.refresh
        if asked is None:
            super()._put(statement, kind, changes)  # type: ignore[arg-type]
            return
        from tidemark.delivery.model.marks import mark_of

        (window,) = (one for one in self.windows if one.stream_name == statement.write.source)
        whole = asked.how is RefreshHow.WHOLE or window.kind is WindowKind.INITIAL_ROWS
        rows = [
            (str(number), version)
            for number, base in enumerate(window.bases)
            for version in range(1 if whole else base.start + 1, base.end + 1)
        ]
        mark = mark_of(self.spec.store_id, self.windows, statement, kind).to_text()  # type: ignore[arg-type]
        table = self._tables[statement.target.path]
        assert isinstance(table, KeptTable)
        table.refresh(statement, mark, rows, whole=whole)


class ViewWorld(World):
    """Views by name over `source` and `other`. `before_job` is called with each job before it runs. `shaped`: the shape
    in which views that are created from now on are kept. `seconds`: the time that drivers say a refresh took.
    """

    shaped: Callable[[ViewQuery], KeptShape] = staticmethod(rows_shape)
    before_job: Callable[[JobSpec], None] | None = None
    seconds: Mapping[RefreshHow, float] = MappingProxyType({})

    def __init__(self, root: Path, url: str) -> None:
        super().__init__(root, url)
        self.sources = {name: KeptTable(root / f"base_{name}") for name in ("source", "other")}
        self.by_uri |= {table.uri: table for table in self.sources.values()}
        self.kept: dict[str, KeptTable] = {}
        self.drivers: list[Driver] = []

    def driver(self, spec: JobSpec) -> Driver:
        if self.before_job is not None:
            self.before_job(spec)
        self.drivers.append(RefreshDriver(spec, self.by_uri, self.clock))
        self.drivers[-1].seconds = self.seconds
        return self.drivers[-1]

    def view(
        self,
        name: str,
        *reads: str,
        kind: KeptKind = KeptKind.DYNAMIC_TABLE,
        mode: RefreshMode = RefreshMode.INCREMENTAL,
        lag: TargetLag | None = None,
        **more: object,
    ) -> KeptView:
        """A view over tables of the world, or other views, by their names."""
        request = ViewRequest(
            name=name,
            kind=kind,
            text="SELECT 1",
            path=str(self.root / f"kept_{name}"),
            target_lag=(lag or TargetLag()) if kind is KeptKind.DYNAMIC_TABLE else None,
            mode=mode,
            **more,  # type: ignore[arg-type]
        )
        lakes = Lakes(lambda asked: self._resolved(asked, name, reads), lambda _: None, open_table)
        return create_view(self.store, request, by="test", lakes=lakes).view

    def refresh(self, name: str, run: str = "one") -> tuple[Refreshed, ...]:
        return refresh_view(self.runtime, name, key=key_of(run))

    def refresh_due(self, run: str, **how: bool) -> tuple[Refreshed, ...]:
        return refresh_due(self.runtime, key=key_of(run), **how)

    def with_job(self, run: Callable[[JobSpec], JobResult]) -> Runtime:
        return replace(self.runtime, run=run)

    def stored(self, name: str) -> KeptView:
        return get_view(self.store, name)

    def last(self, name: str) -> Refresh:
        return view_history(self.store, name)[0]

    def rows(self, name: str) -> dict[tuple[str, int], int]:
        """Row → how often a reader of the view's last refresh sees it."""
        _, version = kept_read(self.store, name, open_table)
        table = self.kept[name]
        table.reload()
        found: dict[tuple[str, int], int] = {}
        for path in table._files(version):
            if path.startswith("change-"):
                _, base, number, *_ = path.split("-")
                found[base, int(number)] = found.get((base, int(number)), 0) + 1
        return found

    def _resolved(self, asked: ResolveRequest, name: str, reads: Sequence[str]) -> Resolved:
        """The answer of Spark."""
        if name not in self.kept:
            configuration = dict(asked.kept.properties) if asked.kept is not None else {}
            self.kept[name] = KeptTable(self.root / f"kept_{name}", configuration)
            self.by_uri[self.kept[name].uri] = self.kept[name]
        tables = [self.sources.get(one) or self.kept[one] for one in reads]
        bases = tuple(
            TableRef(one, table.uri, table.table_id, Addressing.PATH) for one, table in zip(reads, tables, strict=True)
        )
        joined = " CROSS JOIN ".join(f"{BASE}{number} AS b{number}" for number in range(len(reads)))
        query = ViewQuery(
            name=name,
            text=f"SELECT b0.id AS id FROM {joined}",
            schema_json=json.dumps({"type": "struct", "fields": [_ID]}),
            bases=tuple(table.uri for table in tables),
            settings={},
            digest=f"digest of {name} {reads}",
            views={},
        )
        kept = TableRef(name, self.kept[name].uri, self.kept[name].table_id, Addressing.PATH)
        return Resolved(self.shaped(query), bases, ("id",), kept)
