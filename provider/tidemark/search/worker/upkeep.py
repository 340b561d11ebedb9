"""The upkeep of a search table: one job, if the base has new files."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from tidemark.errors import CorruptLog, LogIncomplete, TableNotFound, TidemarkError
from tidemark.failpoints import failpoint
from tidemark.lake.delta_log import DeltaLog
from tidemark.model.foreign_json import foreign_value, whole_number
from tidemark.model.statements import TransactionKey
from tidemark.model.table_log import Commit, TableState
from tidemark.search.model.jobs import KEEP_SEARCH_PATH, MARK, KeepReport, KeepRequest, Kept, UpkeepMark
from tidemark.search.model.paths import Search
from tidemark.search.store import searches
from tidemark.search.worker.definitions import get_search
from tidemark.streams.worker.runtime import Runtime

__all__ = ["BYTES_PER_COMMIT", "KeptSearch", "keep_search"]

BYTES_PER_COMMIT = 8 << 30


@dataclass(frozen=True)
class KeptSearch:
    """The end of an upkeep. `commits`: of this run, and of earlier ones that died before they were noted. `job`:
    whether one was needed.
    """

    search: Search
    base_version: int
    commits: tuple[Kept, ...]
    job: bool


def keep_search(
    runtime: Runtime, table_path: str, name: str, *, key: TransactionKey, most_bytes: int = BYTES_PER_COMMIT
) -> KeptSearch:
    """Let the search table of the table at `table_path` cover its newest version.

    A second run covers what is new since then; without new files it starts no job. `most_bytes`: of the base in one
    commit. Raises SearchNotFound, JobError, and what the logs raise.
    """
    search = get_search(runtime.store, table_path, name)
    base = runtime.tables(search.table)
    state = base.state()
    head = state.version
    report: KeepReport | None = None
    try:
        needed = _needs_a_job(search, base, state)
        if needed:
            request = KeepRequest(base.uri, head, search.location, search.app_id, search.stored_paths, most_bytes)
            report = runtime.run_job(KEEP_SEARCH_PATH, request, key=key)
    except TidemarkError as error:
        _note_problem(runtime, search, error, key)
        raise
    failpoint("upkeep.kept")
    commits = _note(runtime, search, state, report, key)
    return KeptSearch(get_search(runtime.store, table_path, name), head, commits, needed)


def _needs_a_job(search: Search, base: DeltaLog, state: TableState) -> bool:
    """Whether the base has files that the last upkeep has not seen, or is another table, or the paths are others."""
    head = state.version
    if state.table_id != search.table.table_id:
        return True
    if search.kept_version is None or set(search.kept_ids) != _ids(search) or search.problem is not None:
        return True
    if search.kept_version >= head:
        return search.kept_version > head
    try:
        return any(commit.adds or commit.removes for commit in base.commits(search.kept_version, head))
    except (LogIncomplete, CorruptLog):
        return True


def _note(
    runtime: Runtime, search: Search, state: TableState, report: KeepReport | None, key: TransactionKey
) -> tuple[Kept, ...]:
    store, run, now = runtime.store, str(key), runtime.store.clock()
    since = store.read(lambda connection: searches.newest_commit(connection, search))
    commits = _commits(runtime, search, since) if report is not None else ()
    ids = sorted(_ids(search))

    def note(connection: sa.Connection) -> None:
        searches.keep_commits(connection, search, commits, run=run)
        searches.note_kept(
            connection,
            search,
            base_version=state.version,
            table_id=state.table_id,
            ids=ids,
            report=report,
            at=now,
            by=run,
        )

    store.write(note)
    return commits


def _commits(runtime: Runtime, search: Search, since: int) -> tuple[Kept, ...]:
    """The commits of the upkeep behind the version `since` of the search table, as its log has them."""
    try:
        log = DeltaLog.open(search.location, _options(runtime, search))
        after = max(since, log.earliest() - 1)
        found = (_kept(commit, search) for commit in log.commits(after, log.head()))
        return tuple(one for one in found if one is not None)
    except TableNotFound:
        return ()


def _options(runtime: Runtime, search: Search) -> dict[str, str]:
    return dict(runtime.tables(search.table).storage.options)


def _kept(commit: Commit, search: Search) -> Kept | None:
    mark = foreign_value(UpkeepMark, commit.user_metadata, MARK)
    if mark is None or mark.app_id != search.app_id:
        return None
    metrics = commit.operation_metrics
    rows = whole_number(metrics.get("numOutputRows")) or 0
    return Kept(commit.version, mark, rows, sum(file.size for file in commit.adds), commit.timestamp)


def _note_problem(runtime: Runtime, search: Search, error: TidemarkError, key: TransactionKey) -> None:
    problem, now = f"{type(error).__name__}: {error}", runtime.store.clock()
    runtime.store.write(
        lambda connection: searches.note_problem(connection, search, problem=problem, at=now, by=str(key))
    )


def _ids(search: Search) -> set[int]:
    return {path.id for path in search.stored_paths}
