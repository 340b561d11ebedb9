"""A capture continues on another server that has the same transactions, wherever its log has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.databases.mariadb import BinlogServer
from tests.databases.mysql.captured import ROW, BinlogWorld
from tests.databases.mysql.conftest import STARTED
from tests.tiers import some
from tests.until import wait_until
from tidemark.errors import LogPurged, SourceIsAnother, SourceUnreachable, TransactionsMissing
from tidemark.model.source_address import SourceKind
from tidemark.replication.model.replication import (
    LogPosition,
    Replication,
    ReplicationOptions,
    ReplicationState,
    Selection,
)
from tidemark.replication.planning.positions import epoch_of, place_of
from tidemark.replication.sources.change_log import Origin
from tidemark.replication.sources.mysql.capturing import binary_log
from tidemark.replication.sources.mysql.connection import connect
from tidemark.replication.sources.mysql.failover import gtids_at
from tidemark.replication.sources.mysql.log_stream import events_from
from tidemark.replication.sources.mysql.source import BinlogSource

NOW = datetime(2026, 11, 27, tzinfo=UTC)


@dataclass
class Pair:
    """A primary, whose table `t` is captured, and another server with the same table and no transaction yet."""

    primary: BinlogServer
    other: BinlogServer
    origin: Origin = field(default_factory=Origin)

    def __post_init__(self) -> None:
        self.world = BinlogWorld(self.primary)
        self.other.sql(f"CREATE DATABASE {self.database}")
        for one in (self.primary, self.other):
            one.sql("CREATE TABLE t (id INT PRIMARY KEY)", self.database)
            one.sql("CREATE TABLE u (id INT PRIMARY KEY)", self.database)
            one.forget_log()
        self.world.replicate("t")

    @property
    def database(self) -> str:
        return self.world.database

    @property
    def mariadb(self) -> bool:
        return self.primary.kind is SourceKind.MARIADB

    def gtid(self, number: int, domain: int = 0) -> str:
        """Of the primary's transactions, in the order of its log. A MySQL has tags, as a MariaDB has domains."""
        if self.mariadb:
            return f"{domain}-901-{number}"
        ((server,),) = self.primary.sql("SELECT @@server_uuid")
        return f"{server}:{f't{domain}:' if domain else ''}{number}"

    def insert(self, key: int, domain: int = 0, table: str = "t") -> None:
        """On the primary."""
        before = f"SET gtid_domain_id = {domain}"
        if not self.mariadb:
            before = f"SET gtid_next = 'AUTOMATIC{f':t{domain}' if domain else ''}'"
        self._run(self.primary, before, f"INSERT INTO {table} VALUES ({key})")

    def repeat(self, key: int, gtid: str, table: str = "t") -> None:
        """The primary's transaction, as a replica writes it."""
        settings = f"SET gtid_next = '{gtid}'"
        if self.mariadb:
            domain, server, number = gtid.split("-")
            settings = f"SET gtid_domain_id = {domain}, server_id = {server}, gtid_seq_no = {number}"
        self._run(self.other, settings, f"INSERT INTO {table} VALUES ({key})")

    def _run(self, server: BinlogServer, *statements: str) -> None:
        with closing(server.connection(self.database)) as connection, connection.cursor() as cursor:
            for one in statements:
                cursor.execute(one)
            connection.commit()

    def read(self, until: LogPosition | None = None, **options: Any) -> list[dict[str, Any]]:
        """The events of the next batch of the server that `world` is connected to, schemas left out."""
        world = self.world
        with binary_log(world.request(**options), world.address, None) as log:
            log.resume(world.position, self.origin)
            batch = log.batch(world.position, log.end(until), world.schemas, heartbeat=False)
            with batch.rows() as chunks:
                rows = [dict(zip(ROW, row, strict=True)) for chunk in chunks for row in chunk]
        world.schemas, world.position, self.origin = batch.found.schemas, batch.found.upto, batch.found.origin
        return [row for row in rows if row["change"] != "SCHEMA"]

    def fail_over(self) -> None:
        self.world.server = self.other

    def replication(self) -> Replication:
        """As a store has it."""
        return Replication(
            "uid", "r", self.primary.kind, "shop", Selection((f"{self.database}.t",)), ReplicationOptions("lake"),
            "/log", "slot", "p", ReplicationState.RUNNING, NOW, self.world.position, NOW, 1, self.origin.server,
            gtids=self.origin.gtids,
        )  # fmt: skip


def keys(rows: Sequence[dict[str, Any]]) -> list[str]:
    return [row["key"].strip('[]"') for row in rows if row["change"] == "INSERT"]


@pytest.fixture(scope="module", params=some(["mariadb", "mysql"], ["mariadb"], "a server that has to be fetched first"))
def servers(request: pytest.FixtureRequest) -> Iterator[tuple[BinlogServer, BinlogServer]]:
    with STARTED[request.param]() as primary, STARTED[request.param](("--server-id=77", "--log-bin=other")) as other:
        yield primary, other


@pytest.fixture
def pair(servers: tuple[BinlogServer, BinlogServer]) -> Pair:
    return Pair(*servers)


def test_every_event_comes_once_and_later_positions_sort_behind(pair: Pair) -> None:
    for number in range(1, 5):
        pair.insert(number)
    before = pair.read(max_events=3)
    assert keys(before) == ["1", "2"]
    for number in range(1, 5):
        pair.repeat(number, pair.gtid(number))
    pair.fail_over()
    pair.repeat(5, pair.gtid(5))
    mark, *after = pair.read()
    assert (mark["change"], mark["file"], mark["sequence"]) == ("HEARTBEAT", "other.000001", 0)
    assert keys(after) == ["3", "4", "5"]
    assert [row["gtid"] for row in after] == [pair.gtid(number) for number in (3, 4, 5)]
    commits = [row["commit"] for row in (*before, mark, *after)]
    assert commits == sorted(commits)
    assert [epoch_of(LogPosition(one)) for one in commits] == [1, 1, 2, 2, 2, 2]
    assert pair.read() == []
    pair.repeat(6, pair.gtid(6))
    assert keys(pair.read()) == ["6"], "the new server is the known one"


def test_a_log_of_another_order_gives_what_lacks_and_nothing_twice(pair: Pair) -> None:
    """Domains of a MariaDB, and sequences of a MySQL, may lie in any order in another log."""
    for number in range(1, 4):
        pair.insert(number)
        pair.insert(10 + number, domain=7)
    assert keys(pair.read(max_events=4)) == ["1", "11", "2"]
    for number in (1, 2, 3):
        pair.repeat(10 + number, pair.gtid(number, 7))
    for number in (1, 2, 3):
        pair.repeat(number, pair.gtid(number))
    pair.fail_over()
    _, *after = pair.read(max_events=1)
    assert keys(after)[:2] == ["12", "13"], "a batch ends behind all that was captured"
    while batch := pair.read(max_events=1):
        after += batch
    assert keys(after) == ["12", "13", "3"]


def test_a_server_that_is_behind_is_refused_until_it_has_everything(pair: Pair) -> None:
    for number in (1, 2):
        pair.insert(number)
    pair.read()
    pair.repeat(1, pair.gtid(1))
    pair.fail_over()
    for act in (pair.read, lambda: BinlogSource(pair.world.address).require_ours(pair.replication())):
        with pytest.raises(TransactionsMissing, match=r"lacks transactions that were captured: \S*\b2\. ") as caught:
            act()
        assert caught.value.facts["gtids"] == pair.gtid(2)
    pair.repeat(2, pair.gtid(2))
    assert keys(pair.read()) == []


def test_a_server_that_went_another_way_is_refused(pair: Pair) -> None:
    """It has a transaction of that number, of its own, and more."""
    for number in (1, 2):
        pair.insert(number)
    pair.read()
    pair.repeat(1, pair.gtid(1))
    for number in (2, 3):
        pair.other.sql(f"INSERT INTO t VALUES (10{number})", pair.database)
    pair.fail_over()
    with pytest.raises(TransactionsMissing) as caught:
        pair.read()
    assert caught.value.facts["gtids"] == pair.gtid(2)


def test_a_purged_log_that_has_what_lacks_is_named(pair: Pair) -> None:
    for number in (1, 2, 3):
        pair.insert(number)
    pair.read(max_events=3)
    for number in (1, 2, 3):
        pair.repeat(number, pair.gtid(number))
    pair.fail_over()
    wait_until(lambda: _purged(pair.other))
    pair.repeat(4, pair.gtid(4))
    with pytest.raises(LogPurged, match="purged transactions that were not captured"):
        pair.read()


def _purged(server: BinlogServer) -> bool:
    server.sql("FLUSH BINARY LOGS")
    files = [row[0] for row in server.sql("SHOW BINARY LOGS")]
    server.sql(f"PURGE BINARY LOGS TO '{files[-1]}'")
    return files[0] not in [row[0] for row in server.sql("SHOW BINARY LOGS")]


def test_only_the_newest_files_of_a_long_log_are_read(pair: Pair) -> None:
    """Captured transactions may be purged."""
    for number in (1, 2, 3):
        pair.insert(number)
    pair.read(max_events=3)
    for number in (1, 2):
        pair.repeat(number, pair.gtid(number))
    wait_until(lambda: _purged(pair.other))
    pair.repeat(3, pair.gtid(3))
    pair.fail_over()
    mark, *after = pair.read()
    assert keys(after) == ["3"]
    assert mark["file"] != "other.000001"


def test_without_gtids_another_server_ends_it_for_good(pair: Pair) -> None:
    pair.insert(1)
    pair.read()
    pair.repeat(1, pair.gtid(1))
    pair.fail_over()
    pair.origin = Origin(pair.origin.server)
    with pytest.raises(SourceIsAnother):
        pair.read()
    with pytest.raises(SourceIsAnother):
        BinlogSource(pair.world.address).require_ours(pair.replication())


def test_an_end_of_another_log_is_not_read_to(pair: Pair) -> None:
    """The worker looked at a server, and the job finds another."""
    pair.insert(1)
    end = pair.world.here()
    pair.read(end)
    pair.repeat(1, pair.gtid(1))
    pair.repeat(2, pair.gtid(2))
    pair.fail_over()
    with binary_log(pair.world.request(), pair.world.address, None) as log:
        log.resume(pair.world.position, pair.origin)
        assert log.end(end) == pair.world.position
    place = place_of(end)
    assert place is not None
    with pytest.raises(SourceUnreachable, match="another server answers"):
        next(events_from(pair.world.address, place, server=pair.origin.server))


def test_runs_without_news_know_the_gtids_of_their_position(pair: Pair) -> None:
    pair.insert(1)
    pair.read()
    for number in (2, 3):
        pair.insert(number, table="u")
    known, source = pair.replication(), BinlogSource(pair.world.address)
    until = source.current_position(known)
    assert not source.has_changes(known, until)
    with connect(pair.world.address) as connection:
        place = place_of(until)
        assert place is not None
        found = gtids_at(connection, pair.world.address, place)
    assert found != known.gtids
    assert source.gtids(known, until) == found, "of its look"
    assert BinlogSource(pair.world.address).gtids(replace(known, gtids=None), until) == found, "without one"
    pair.insert(4)
    assert source.has_changes(known, source.current_position(known))


def test_a_worker_finds_the_next_epoch_of_positions(pair: Pair) -> None:
    pair.insert(1)
    pair.read()
    pair.repeat(1, pair.gtid(1))
    pair.fail_over()
    known, source = pair.replication(), BinlogSource(pair.world.address)
    assert source.require_ours(known) == known.captured
    end = source.current_position(known)
    assert epoch_of(end) == 2
    assert source.has_changes(known, end), "a run has to find the place"
    first = source.parse_position("other.000001:4", known)
    assert source.slot_position(known) == first
    assert pair.world.position < first < end
    assert source.parse_position(end.commit, known) == end


def test_gtids_that_grow_with_batches_are_those_of_the_place(pair: Pair) -> None:
    for number in range(1, 4):
        pair.insert(number)
        pair.insert(10 + number, domain=7)
    pair.primary.sql("FLUSH BINARY LOGS")
    pair.insert(4)
    while pair.read(max_events=2):
        place = place_of(pair.world.position)
        assert place is not None
        with connect(pair.world.address) as connection:
            assert gtids_at(connection, pair.world.address, place) == pair.origin.gtids
    assert pair.gtid(4).rpartition(":")[0] in pair.origin.gtids
