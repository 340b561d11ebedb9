"""Commits to one table, each based on the last known snapshot. Only the table writer's thread calls it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from tidemark.channels.driver.kernel import DataFile, KernelSnapshot, KernelTable
from tidemark.channels.driver.lake_files import LakeFiles
from tidemark.channels.driver.table_spec import TableSpec, spec_of
from tidemark.channels.model.channels import WATCH_DOMAIN, ChannelRecord, IngestWatch
from tidemark.channels.planning.evolution import Evolution, evolved_schema
from tidemark.channels.planning.names import domain_of
from tidemark.channels.planning.records import millis, record_in, record_text, records_in, time_of, watch_in, watch_text
from tidemark.channels.planning.restores import newest_restore, records_after, rewound_records, unseen_restore
from tidemark.errors import CommitConflict, IngestPaused
from tidemark.failpoints import failpoint
from tidemark.lake.delta_log import DeltaLog
from tidemark.lake.log_tails import log_tail
from tidemark.lake.segments import commit_name
from tidemark.model.foreign_json import foreign_object

__all__ = ["TableCommits"]

_BETWEEN_WATCHES = timedelta(minutes=1)
_TRIES = 50


class TableCommits:
    """`spec`: the table at the last known snapshot. `generation`: number of times that the table was read. After each,
    other writers may have the channels. `later`: takes the work that a commit leaves for later.
    """

    def __init__(
        self,
        name: str,
        table: KernelTable,
        files: LakeFiles,
        log: DeltaLog,
        *,
        clock: Callable[[], datetime],
    ) -> None:
        self.name, self.files = name, files
        self._table, self._log, self._clock = table, log, clock
        self.later: Callable[[Sequence[Any]], None] = _left
        self._snapshot: KernelSnapshot | None = None
        self._checked_to: int | None = None  # versions up to here were searched for RESTORE
        self._without_restore: dict[str, int] = {}  # table id → a version up to which readers found none
        self._watched_at: datetime | None = None
        self._mark: tuple[object, ...] | None = None
        self._paused_until: int | None = None
        self.generation = 0
        self.refresh()

    @property
    def uri(self) -> str:
        """The table's URI."""
        return self._table.uri

    def refresh(self) -> None:
        """Read the table again. Tokens go back first if it was restored since it was last looked at.

        Raises TableNotFound, TableNotSupported, KernelFailed and errors of the storage.
        """
        for _ in range(_TRIES):
            snapshot = self._latest()
            self._adopt(snapshot, spec_of(self.name, snapshot.metadata(), snapshot.protocol()))
            try:
                if not self._set_back(snapshot):
                    return
            except CommitConflict:
                continue  # another committer may have set the tokens back
        raise CommitConflict(table=self.name, problem=f"{_TRIES} commits in a row met those of others")

    def is_stale(self) -> bool:
        """Whether the table must be read again before the next commit.

        So it must if it was dropped, or created again at its path. A commit would break the new table's log.
        """
        on = self._snapshot
        return on is None or self.files.mark(commit_name(on.version)) != self._mark

    def forget(self) -> None:
        """The last known snapshot is not the table any more, or nobody knows whether it is."""
        self._snapshot = None

    def require_not_paused(self) -> None:
        """Raises IngestPaused if the table takes no rows now, as of the last known snapshot."""
        if self._paused_until is not None and millis(self._clock()) < self._paused_until:
            raise IngestPaused(table=self.name, until=time_of(self._paused_until))

    def pause(self, until: datetime) -> None:
        """Let no committer commit rows until then, nor before the end of a pause that lasts longer.

        1. A commit announces the end of the pause. It meets no commit of rows, so busy channels cannot hold it up. A
           committer that passes it reads the table again, and stops.
        2. Another one sets all records again. It follows the last rows, since a committer that knew nothing meets it.

        A second run announces nothing twice. Raises CommitConflict, KernelFailed.
        """
        known = self._known()
        if (self._paused_until or 0) < millis(until):
            self._watched_at, self._paused_until = None, millis(until)
            self.commit({})
            known = self._known()
        self.commit(records_in(known.domains(), self.spec.table_id))

    def evolve(self, evolution: Evolution) -> None:
        """Give the table the columns that it lacks. Nothing happens if it has them.

        Raises IngestPaused, CommitConflict, KernelFailed, TableNotSupported.
        """
        on = self._known()
        self.require_not_paused()
        schema_json = evolved_schema(self.spec.schema_json, evolution)
        if schema_json == self.spec.schema_json:
            return
        stale = self.is_stale()
        self.forget()
        if not stale:
            self._table.set_schema(on, schema_json)
            self.refresh()
        if stale or evolved_schema(self.spec.schema_json, evolution) != self.spec.schema_json:
            raise CommitConflict(table=self.name, problem=f"the schema of version {on.version} was changed by another")

    def record(self, key: str) -> ChannelRecord | None:
        """The committed record of a channel."""
        return record_in(self._known().domain(domain_of(key)), self.spec.table_id)

    def latest_record(self, key: str) -> ChannelRecord | None:
        """The committed record of a channel in the table now. May be called from any thread.

        A RESTORE that no committer has seen yet counts already, and so does a table that was replaced.
        """
        snapshot = self._latest()
        table_id = snapshot.metadata().table_id
        without = self._without_restore.get(table_id, -1)
        watch = snapshot.domain(WATCH_DOMAIN)
        if unseen_restore(self._log, watch, table_id, snapshot.version, after=without) is not None:
            return self._records_in(snapshot).get(key)
        self._without_restore = {table_id: snapshot.version}
        return record_in(snapshot.domain(domain_of(key)), table_id)

    def latest_records(self) -> dict[str, ChannelRecord]:
        """Key → committed record of all channels, as `latest_record`. May be called from any thread."""
        return self._records_in(self._latest())

    def commit(self, records: Mapping[str, ChannelRecord | None], files: Sequence[DataFile] = ()) -> None:
        """One commit of files and records (None removes one), read back. Without either there is none.

        Raises CommitConflict and KernelFailed. After them the table must be read again.
        """
        on = self._known()
        if self.is_stale():
            self.forget()
            raise CommitConflict(table=self.name, problem=f"version {on.version} is not the one that was read")
        own = {domain_of(key): None if record is None else record_text(record) for key, record in records.items()}
        domains = {**own, **self._watch(on)}
        if not domains and not files:
            return
        try:
            committed = self._table.commit(on, files, domains)
            failpoint("channel.committed")
            self._require_there(committed.version, domains)
        except BaseException:
            self.forget()
            raise
        self._snapshot = committed.after
        self._checked_to = committed.version
        self._mark = self.files.mark(commit_name(committed.version))
        self.later(committed.later)

    def _latest(self) -> KernelSnapshot:
        """The table now, from the end of its log alone."""
        return self._table.latest(log_tail(self._log.storage))

    def _known(self) -> KernelSnapshot:
        if self._snapshot is None:
            self.refresh()
        assert self._snapshot is not None
        return self._snapshot

    def _adopt(self, snapshot: KernelSnapshot, spec: TableSpec) -> None:
        self._snapshot, self.spec = snapshot, spec
        self._mark = self.files.mark(commit_name(snapshot.version))
        self.generation += 1

    def _set_back(self, snapshot: KernelSnapshot) -> bool:
        """Whether the table was restored, and the tokens are set back now."""
        watch = watch_in(snapshot.domain(WATCH_DOMAIN), self.spec.table_id)
        self._paused_until = watch.paused_until if watch is not None else None
        known = max(self._checked_to or 0, watch.checked_to if watch is not None else 0)
        if watch is None or known >= snapshot.version:
            self._checked_to = snapshot.version
            return False
        restore = newest_restore(self._log, known, snapshot.version)
        self._checked_to = snapshot.version
        if restore is None:
            return False
        self._watched_at = None  # so that the same commit says that this RESTORE is done with
        records = records_in(snapshot.domains(), self.spec.table_id)
        self.commit(rewound_records(self._log, records, restore, self.spec.table_id))
        return True

    def _records_in(self, snapshot: KernelSnapshot) -> dict[str, ChannelRecord]:
        """Key → record of all channels, as the next committer will find it."""
        return records_after(self._log, snapshot.domains(), snapshot.metadata().table_id, snapshot.version)

    def _watch(self, on: KernelSnapshot) -> dict[str, str]:
        """The domain that says how far the log was searched, once a minute."""
        now = self._clock()
        if self._watched_at is not None and now - self._watched_at < _BETWEEN_WATCHES:
            return {}
        self._watched_at = now
        return {WATCH_DOMAIN: watch_text(IngestWatch(self.spec.table_id, on.version, self._paused_until))}

    def _require_there(self, version: int, domains: Mapping[str, str | None]) -> None:
        """A storage without conditional writes may let another commit overwrite this one."""
        name, text = next(iter(domains.items()))
        wanted = {"domain": name, "removed": text is None} | ({} if text is None else {"configuration": text})
        for line in self.files.read(commit_name(version)).splitlines():
            if line.startswith(b'{"domainMetadata"'):
                said = foreign_object(line).get("domainMetadata", {})
                if {**said, **wanted} == said:
                    return
        raise CommitConflict(table=self.name, problem=f"version {version} was overwritten by another writer")


def _left(_: Sequence[Any]) -> None:
    """Nobody keeps the log short yet; the next commits leave the same work."""
