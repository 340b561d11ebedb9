"""The ends of refreshes: kept with the view and in its history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import sqlalchemy as sa

from tidemark.delivery.model.transactions import CommitResult
from tidemark.materialized.model.definitions import KeptView
from tidemark.materialized.model.refreshes import Refresh, Refreshed, RefreshState
from tidemark.materialized.model.shapes import Shape
from tidemark.materialized.store import refreshes, views
from tidemark.materialized.worker.sizes import commit_bytes
from tidemark.model.statements import Evidence, RefreshHow
from tidemark.model.streams import StreamWindow
from tidemark.streams.store import transactions
from tidemark.streams.worker.opening import Tables, wherever
from tidemark.streams.worker.runtime import Runtime

__all__ = ["Planned", "keep_end", "keep_failure", "refreshed_from", "settled_version"]

_INSERTED = "inserted"
_MOST_LOOKED_AT = 50  # transactions of a view's stream
_LONGEST_PROBLEM = 2_000  # characters


@dataclass(frozen=True)
class Planned:
    """A view and its refresh in a wave, as the store has them."""

    view: KeptView
    refresh: Refresh


def keep_end(runtime: Runtime, planned: Planned, result: CommitResult, *, seconds: float) -> Refreshed:
    """Keep what a committed transaction did for the view. A second run changes nothing."""
    store, view, refresh = runtime.store, planned.view, planned.refresh
    stored = store.read(lambda connection: transactions.latest(connection, result.key)).transaction
    numbers = {s.number: s.write for s in stored.plan.statements if s.write.source == view.stream}
    evidence = next((one for one in result.evidence if one.number in numbers), None)
    window = next((one for one in stored.windows if one.stream_name == view.stream), None)
    ended = replace(refresh, ended_at=store.clock(), versions=_versions(window), state=RefreshState.UNCHANGED)
    how: RefreshHow | None = None
    if evidence is not None:
        write = numbers[evidence.number].refresh
        how = None if write is None else write.how
        ended = replace(
            ended,
            state=RefreshState.DONE,
            rows=sum(evidence.rows.values()),
            bytes=_bytes(view, evidence, runtime.tables),
            seconds=seconds,
            write_seconds=evidence.seconds,
            kept_version=evidence.commit_version,
        )

    def keep(connection: sa.Connection) -> Refresh:
        if refreshes.end_refresh(connection, ended):
            rows = _rows_of(view, evidence, how)
            views.note_refresh(
                connection, view, fresh_at=refresh.as_of, kept_version=ended.kept_version, by=refresh.run, **rows
            )
        return refreshes.find_refresh(connection, view.uid, refresh.run) or refresh

    return refreshed_from(view, store.write(keep))


def keep_failure(runtime: Runtime, planned: Planned, error: BaseException) -> Refreshed:
    """Keep that an attempt has failed, with the view and in its history."""
    store, at = runtime.store, runtime.store.clock()
    words = store.hide(str(error))[:_LONGEST_PROBLEM]

    def keep(connection: sa.Connection) -> Refresh:
        view, refresh = planned.view, planned.refresh
        if refreshes.fail_refresh(connection, refresh, error=words, at=at):
            views.note_problem(connection, view, problem=words, at=at, by=refresh.run)
        return refreshes.find_refresh(connection, view.uid, refresh.run) or refresh

    return refreshed_from(planned.view, store.write(keep))


def refreshed_from(view: KeptView, refresh: Refresh) -> Refreshed:
    """The outcome as the history has it."""
    ended = refresh.ended_at or refresh.planned_at
    return Refreshed(
        view=view.name,
        state=refresh.state,
        as_of=refresh.as_of,
        how=refresh.how if refresh.state is RefreshState.DONE else None,
        why=refresh.error or refresh.why,
        rows=refresh.rows or 0,
        bytes=refresh.bytes or 0,
        seconds=refresh.seconds or 0.0,
        lag_seconds=max(0.0, (ended - refresh.as_of).total_seconds()),
    )


def settled_version(connection: sa.Connection, view: KeptView, stream_uid: str) -> int | None:
    """The version of the kept table that has exactly what the view's stream has read; None before the first refresh.

    It is that of the newest commit, even if its run was killed before it was kept with the view. The newest commit is
    the one with the highest version, since clocks may be set back.
    """
    found = [] if view.kept_version is None else [view.kept_version]
    for stored in transactions.of_stream(connection, stream_uid, _MOST_LOOKED_AT):
        result = stored.transaction.result
        own = [s.number for s in stored.transaction.plan.statements if s.write.source == view.stream]
        found += [one.commit_version for one in (result.evidence if result else ()) if one.number in own]
    return max(found, default=None)


def _rows_of(view: KeptView, evidence: Evidence | None, how: RefreshHow | None) -> Mapping[str, int | None]:
    """The rows of partial aggregates now, and the groups after a compaction; None: unchanged, or of no interest."""
    if evidence is None or view.shape.shape is not Shape.SUMS:
        return {"kept_rows": None, "groups": None}
    inserted = evidence.rows.get(_INSERTED, 0)
    if how is RefreshHow.CHANGES:
        return {"kept_rows": (view.kept_rows or 0) + inserted, "groups": None}
    return {"kept_rows": inserted, "groups": inserted}


def _versions(window: StreamWindow | None) -> Mapping[str, int]:
    return {} if window is None else {base.table.path: base.end for base in window.bases}


def _bytes(view: KeptView, evidence: Evidence, tables: Tables) -> int:
    return commit_bytes(wherever(tables)(view.kept), evidence.commit_version)
