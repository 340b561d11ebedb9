"""Orders and buffers, committed: retried against the table as it is, until the fate of each is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import pyarrow as pa

from tidemark.channels.driver.kernel import DataFile
from tidemark.channels.driver.open_channel import Group
from tidemark.channels.driver.orders import Evolve, Order, Pause
from tidemark.channels.driver.parquet import write_files
from tidemark.channels.driver.quarantine import QuarantineTables
from tidemark.channels.driver.refit import SchemaConflict, refit
from tidemark.channels.driver.table_commits import TableCommits
from tidemark.channels.driver.table_spec import TableSpec
from tidemark.channels.driver.tries import in_tries
from tidemark.channels.model.channels import ChannelRecord, PendingRows, StatusCode
from tidemark.channels.planning.owners import Ended, fate_of
from tidemark.channels.planning.records import advanced
from tidemark.errors import CommitConflict, QuarantineMissing, TableNotFound, TableNotSupported, TidemarkError
from tidemark.failpoints import failpoint

__all__ = ["Delivery", "change_table", "fulfil"]

_TRIES = 50


def fulfil(orders: Sequence[Order], commits: TableCommits, clock: Callable[[], datetime]) -> None:
    """Commit orders, at most one for each channel, in one commit. Each order's `done` is set, by record or error."""
    try:
        records = in_tries(lambda: _commit_records(orders, commits, clock()), _TRIES)
    except TidemarkError as problem:
        for order in _waiting(orders):
            order.done.set_exception(problem)
        return
    failpoint("channel.opened")
    for order in _waiting(orders):
        order.done.set_result(records[order.key])


def change_table(order: Pause | Evolve, commits: TableCommits) -> None:
    """Pause the table, or change its schema. The order's `done` is set."""
    try:
        if isinstance(order, Pause):
            in_tries(lambda: commits.pause(order.until), _TRIES)
        else:
            in_tries(lambda: commits.evolve(order.evolution), _TRIES)
    except TidemarkError as problem:
        order.done.set_exception(problem)
    else:
        order.done.set_result(None)


def _commit_records(orders: Sequence[Order], commits: TableCommits, now: datetime) -> dict[str, ChannelRecord | None]:
    records = _records(orders, commits, now)
    if any(record != commits.record(key) for key, record in records.items()):
        commits.commit(records)
    return records


def _waiting(orders: Sequence[Order]) -> list[Order]:
    return [order for order in orders if not order.done.done()]


def _records(orders: Sequence[Order], commits: TableCommits, now: datetime) -> dict[str, ChannelRecord | None]:
    found = {}
    for order in _waiting(orders):
        known = commits.record(order.key)
        try:
            found[order.key] = order.record(known, commits.spec.table_id, now)
        except TidemarkError as refused:
            order.done.set_exception(refused)
    return found


class Delivery:
    """The buffers of several channels on their way into the table. `run` again after an error: nothing comes twice.

    `token`: gives a new text for each file.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        quarantine: QuarantineTables,
        clock: Callable[[], datetime],
        token: Callable[[], str],
    ) -> None:
        self.groups = list(groups)
        self.settled: list[Group] = []
        self._quarantine, self._clock, self._token = quarantine, clock, token
        self._pending: dict[str, PendingRows] = {}
        self._tried: dict[str, ChannelRecord] = {}
        self._files: tuple[tuple[frozenset[str], str], list[DataFile]] | None = None

    def run(self, commits: TableCommits) -> None:
        """Commit all groups in one commit, without those of channels that have ended.

        Raises IngestPaused, CommitConflict after many tries, KernelFailed and errors of the storage. The groups left
        are in flight.
        """
        for _ in range(_TRIES):
            self._decide_fates(commits)
            if self.groups:
                commits.require_not_paused()
            now = self._clock()
            self._write_bad_rows(commits.uri, now)
            files = self._written(commits, now)  # of the groups that are left
            if not self.groups:
                return
            self._tried = {
                group.channel.key: advanced(group.channel.record, group.step, now, self._pending.get(group.channel.key))
                for group in self.groups
            }
            failpoint("channel.written")
            try:
                commits.commit(self._tried, files)
            except CommitConflict as conflict:
                problem = conflict
                continue
            failpoint("channel.settled")
            for group in list(self.groups):
                self._settle(group, self._tried[group.channel.key])
            return
        raise problem

    def _decide_fates(self, commits: TableCommits) -> None:
        """Decide the fate of each channel that was not checked since the table was read again."""
        try:
            if commits.is_stale():
                commits.refresh()
        except (TableNotFound, TableNotSupported) as error:
            code = StatusCode.MUST_REOPEN if isinstance(error, TableNotFound) else StatusCode.TABLE_NOT_SUPPORTED
            for group in list(self.groups):
                self._end(group, Ended(code, str(error)))
        for group in list(self.groups):
            if group.channel.generation != commits.generation:
                self._decide(group, commits)

    def _decide(self, group: Group, commits: TableCommits) -> None:
        channel = group.channel
        found = commits.record(channel.key)
        fate = fate_of(channel.record, self._tried.get(channel.key), found)
        if isinstance(fate, Ended) or found is None:
            assert isinstance(fate, Ended)
            channel.record = found or channel.record
            self._end(group, fate)
            return
        channel.record, channel.generation = found, commits.generation
        if fate:
            self._settle(group, found)

    def _written(self, commits: TableCommits, now: datetime) -> list[DataFile]:
        """The files of exactly these groups under the table's schema, written once."""
        spec = commits.spec
        tables = [table for group in list(self.groups) for table in self._fitted(group, spec)]
        state = frozenset(group.channel.key for group in self.groups), spec.schema_json
        if self._files is None or self._files[0] != state:
            written = []
            if tables:
                written = write_files(pa.concat_tables(tables), spec, commits.files, token=self._token(), now=now)
            self._files = state, written
        return self._files[1]

    def _write_bad_rows(self, source: str, now: datetime) -> None:
        """Files of bad rows, written once. Those of a channel's earlier commit are in their table before."""
        for group in list(self.groups):
            channel = group.channel
            try:
                self._quarantine.complete(channel.key, channel.record)
            except QuarantineMissing as gone:  # other channels continue
                self._end(group, Ended(StatusCode.MUST_REOPEN, str(gone)))
                continue
            if group.bad and channel.quarantine is not None and channel.key not in self._pending:
                self._pending[channel.key] = self._quarantine.write(group, channel.quarantine, source, now)

    def _fitted(self, group: Group, spec: TableSpec) -> list[pa.Table]:
        """The group's rows under the table's schema; none if they do not fit, and the channel has ended."""
        try:
            return [refit(rows, known, spec) for rows, known in group.rows]
        except SchemaConflict as conflict:
            self._end(group, Ended(StatusCode.SCHEMA_CHANGED, f"{conflict}."))
            return []

    def _settle(self, group: Group, record: ChannelRecord) -> None:
        """The group's rows are committed. Bad rows that cannot be added to their table yet are added before the next
        commit.
        """
        group.channel.record = record
        failpoint("channel.quarantined")
        self._quarantine.try_complete(group.channel.key, record)
        self.groups.remove(group)
        self.settled.append(group)

    def _end(self, group: Group, ended: Ended) -> None:
        group.channel.end(ended)
        self.groups.remove(group)
