"""A server as a worker sees it: what it has, what keeps it from being replicated, and where its log is."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.databases.mariadb import PASSWORD, BinlogServer, mariadb_or_skip
from tests.databases.mysql.captured import BinlogWorld
from tests.databases.mysql.conftest import with_setting
from tests.until import wait_until
from tidemark.errors import InvalidArgument, LogPurged, SourceIsAnother, SourceRefused, SourceSetBack, SourceUnreachable
from tidemark.model.source_address import SourceKind
from tidemark.replication.model.replication import (
    FoundObject,
    Replication,
    ReplicationOptions,
    ReplicationState,
    Selection,
)
from tidemark.replication.planning.positions import parse_file_place, place_of
from tidemark.replication.planning.selection import select
from tidemark.replication.sources.change_log import Origin
from tidemark.replication.sources.mysql.capturing import binary_log
from tidemark.replication.sources.mysql.connection import connect, dialect_at, rows_of
from tidemark.replication.sources.mysql.failover import gtids_at
from tidemark.replication.sources.mysql.log_files import seen_at
from tidemark.replication.sources.mysql.source import BinlogSource
from tidemark.replication.sources.open import open_source
from tidemark.replication.worker.source_discovery import discover_source

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def _replication(world: BinlogWorld, **more: object) -> Replication:
    made = Replication(
        "uid", "shop", world.server.kind, "conn", Selection((world.database,)), ReplicationOptions("lake"), "/events",
        "slot", "p", ReplicationState.RUNNING, NOW, captured=world.position, system_id=_source(world).system_id(),
    )  # fmt: skip
    return replace(made, **more)  # type: ignore[arg-type]


def _source(world: BinlogWorld) -> BinlogSource:
    source = open_source(world.address)
    assert isinstance(source, BinlogSource)
    return source


def _tables(world: BinlogWorld) -> dict[str, FoundObject]:
    found = _source(world).discover(_replication(world))
    return {one.name.table: one for one in found if one.name.schema == world.database}


def test_the_server_says_which_database_it_is(binlog_server: BinlogServer) -> None:
    assert dialect_at(binlog_server.address()).kind is binlog_server.kind


def test_tables_are_found_with_their_columns_keys_and_reasons(world: BinlogWorld) -> None:
    world.sql(
        "CREATE TABLE t (b INT, a INT, c ENUM('x'), PRIMARY KEY (a, b))",
        "CREATE TABLE no_key (a INT)",
        "CREATE VIEW v AS SELECT * FROM t",
        "CREATE TABLE odd (a VARCHAR(9) CHARACTER SET dec8)",
    )
    found = _tables(world)
    assert set(found) == {"t", "no_key", "odd"}
    assert found["t"].schema.keys == ("b", "a")
    assert found["t"].source_id == f"{world.database}.t"
    assert found["no_key"].unsupported is None
    assert "dec8" in (found["odd"].unsupported or "")
    assert _source(world).published(_replication(world)) >= {one.source_id for one in found.values()}
    named = _replication(world, selection=Selection((f"{world.database}.v",)))
    assert [one.unsupported for one in _source(world).discover(named) if one.name.table == "v"] != [None]


def test_patterns_fit_tables_in_any_case_if_the_server_takes_them_so() -> None:
    with mariadb_or_skip(["--lower-case-table-names=1"]) as server:
        world = BinlogWorld(server)
        world.sql("CREATE TABLE Orders (id INT PRIMARY KEY)", "CREATE TABLE Secrets (id INT PRIMARY KEY)")
        database = world.database.upper()
        chosen = Selection((f"{database}.*",), (f"{database}.Secrets",))
        replication = _replication(world, selection=chosen, captured=world.here())
        source = _source(world)
        assert [one.name.table for one in select(chosen, source.discover(replication))] == ["orders"]
        assert discover_source(source, server.kind, include=chosen.include, exclude=chosen.exclude).notices == ()
        assert not source.has_changes(replication, world.here())
        world.sql("INSERT INTO ORDERS VALUES (1)")
        assert source.has_changes(replication, world.here())


def test_patterns_distinguish_tables_by_case_if_the_server_does(world: BinlogWorld) -> None:
    world.sql("CREATE TABLE t (id INT PRIMARY KEY, Note INT)")
    found = [one for one in _source(world).discover(_replication(world)) if one.name.schema == world.database]
    assert select(Selection((f"{world.database}.T",)), found) == ()
    (chosen,) = select(Selection((f"{world.database}.t",), (f"{world.database}.t.NOTE",)), found)
    assert [one.name for one in chosen.schema.columns] == ["id"]


def test_a_table_without_a_key_is_told_with_its_statement(world: BinlogWorld) -> None:
    world.sql("CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE no_key (a INT)")
    found = discover_source(_source(world), world.server.kind, include=(world.database,))
    notices = {one.name.table: one.notices for one in found.tables}
    assert notices["t"] == ()
    assert f"ALTER TABLE `{world.database}`.`no_key` ADD PRIMARY KEY" in notices["no_key"][0]
    assert all(one.fits for one in found.tables)


def test_a_sound_server_has_no_problem(world: BinlogWorld) -> None:
    world.sql("CREATE TABLE t (id INT PRIMARY KEY)")
    source, replication = _source(world), _replication(world)
    assert source.problems(replication, list(_tables(world).values())) == ()
    assert source.alerts(replace(replication, captured_at=datetime.now(UTC))) == ()


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("binlog_format", "'MIXED'", "SET GLOBAL binlog_format = ROW"),
        ("binlog_row_image", "'NOBLOB'", "SET GLOBAL binlog_row_image = FULL"),
        ("binlog_row_metadata", "'MINIMAL'", "SET GLOBAL binlog_row_metadata = FULL"),
        ("binlog_expire_logs_seconds", "3600", "SET GLOBAL binlog_expire_logs_seconds = 604800"),
    ],
)
def test_each_setting_that_is_wrong_is_told_with_its_statement(
    own_server: BinlogServer, name: str, value: str, remedy: str
) -> None:
    world = BinlogWorld(own_server)
    with with_setting(own_server, name, value):
        (problem,) = _source(world).problems(_replication(world), ())
    assert remedy in problem.text
    assert _source(world).problems(_replication(world), ()) == ()


def test_rights_that_are_missing_are_told_with_their_statement(own_server: BinlogServer) -> None:
    world = BinlogWorld(own_server)
    replication = _replication(world)
    own_server.sql("CREATE USER poor@'%' IDENTIFIED BY 'poor password'")
    source = BinlogSource(own_server.address(user="poor", password="poor password"))
    waits, problem = source.problems(replication, ())
    assert "GRANT PROCESS ON *.* TO 'poor'@'%'" in waits.text
    own_server.sql("GRANT PROCESS ON *.* TO 'poor'@'%'")
    monitor = "BINLOG MONITOR" if own_server.kind is SourceKind.MARIADB else "REPLICATION CLIENT"
    assert f"GRANT {monitor} ON *.* TO 'poor'@'%'" in problem.text
    own_server.sql(f"GRANT {monitor} ON *.* TO 'poor'@'%'")
    (problem,) = source.problems(replication, ())
    assert "GRANT REPLICATION SLAVE ON *.* TO 'poor'@'%'" in problem.text
    own_server.sql("GRANT REPLICATION SLAVE ON *.* TO 'poor'@'%'")
    assert source.problems(replication, ()) == ()


def test_names_that_delta_cannot_tell_apart_are_told(world: BinlogWorld) -> None:
    world.sql("CREATE TABLE t (id INT PRIMARY KEY, datastream_metadata INT)", "CREATE TABLE `T` (id INT PRIMARY KEY)")
    texts = [problem.text for problem in _source(world).problems(_replication(world), list(_tables(world).values()))]
    assert any("one target" in text for text in texts)
    assert any("columns that its target has for itself" in text for text in texts)


def test_options_of_a_postgresql_are_refused(world: BinlogWorld) -> None:
    replication = _replication(world, options=ReplicationOptions("lake", slot="mine"))
    with pytest.raises(InvalidArgument, match="slot"):
        _source(world).problems(replication, ())


def test_the_log_says_whether_a_table_of_the_selection_changed(world: BinlogWorld) -> None:
    world.sql("CREATE TABLE t (id INT PRIMARY KEY)")
    other = world.server.new_database("other")
    world.server.sql(f"CREATE TABLE {other}.x (id INT)")
    source = _source(world)
    replication = _replication(world, captured=world.here())
    assert not source.has_changes(replication, world.here())
    world.server.sql(f"INSERT INTO {other}.x VALUES (1)")
    assert not source.has_changes(replication, world.here())
    before = world.here()
    world.sql("INSERT INTO t VALUES (1)")
    assert source.has_changes(replication, world.here())
    assert not source.has_changes(replication, before), "it was committed behind that"
    truncated = replace(replication, captured=world.here())
    world.sql("TRUNCATE t")
    assert source.has_changes(truncated, world.here())
    excluded = replace(replication, selection=Selection((world.database,), (f"{world.database}.t",)))
    assert not source.has_changes(excluded, world.here())


def test_a_foreign_key_whose_changes_the_log_lacks_is_told(world: BinlogWorld) -> None:
    """A MySQL of the tests has events of them."""
    world.sql("CREATE TABLE p (id INT PRIMARY KEY)", "INSERT INTO p VALUES (1)")
    for table, rule in (("`a-c`", "ON DELETE CASCADE"), ("n", "ON DELETE SET NULL"), ("r", "ON DELETE RESTRICT")):
        world.sql(
            f"CREATE TABLE {table} (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) {rule})",
        )
    world.sql("INSERT INTO `a-c` VALUES (1, 1)")
    told = {one.name.table: one.notices for one in _source(world).discover(_replication(world))}
    world.replicate("a-c")
    world.sql("DELETE FROM p")
    events = [str(event["change"]) for event in world.events()]
    in_log = world.server.kind is SourceKind.MYSQL
    assert events == (["DELETE"] if in_log else [])
    assert {table for table, notices in told.items() if notices} == (set() if in_log else {"a-c", "n"})
    assert in_log or "without an event in the log" in told["n"][0]


def test_nothing_is_made_or_locked_in_the_source(world: BinlogWorld) -> None:
    source, replication = _source(world), _replication(world)
    position = source.make_slot(replication, patience=timedelta(seconds=1))
    assert position == world.here() == source.current_position()
    assert source.publish(replication, ()) == source.drop(replication) == ()
    assert source.locked(replication, ()) == frozenset()
    assert not source.drop_slot(replication)
    source.advance(replication, position)
    first = source.slot_position(replication)
    assert first is not None
    assert first < position
    assert source.parse_position(parse_file_place(position.commit).text) == position
    assert source.require_ours(replace(replication, captured=position)) == position


def test_another_server_and_a_log_that_is_gone_end_it_for_good(own_server: BinlogServer) -> None:
    world = BinlogWorld(own_server)
    source, replication = _source(world), _replication(world)
    with pytest.raises(SourceIsAnother):
        source.require_ours(replace(replication, system_id="another"))
    other = SourceKind.MYSQL if own_server.kind is SourceKind.MARIADB else SourceKind.MARIADB
    with pytest.raises(SourceIsAnother, match="of a M"):
        source.require_ours(replace(replication, kind=other))
    wait_until(lambda: _purged(world))
    with pytest.raises(LogPurged, match="purged"):
        source.require_ours(replication)
    with pytest.raises(LogPurged, match=r"test-bin\.000001"):
        source.has_changes(replication, world.here())
    reset = "RESET MASTER" if own_server.kind is SourceKind.MARIADB else "RESET BINARY LOGS AND GTIDS"
    last = world.here()
    own_server.sql(reset)
    with pytest.raises(SourceSetBack, match="was set back"):
        source.require_ours(replace(replication, captured=last))


def test_a_log_that_began_again_is_found_even_if_it_is_longer(own_server: BinlogServer) -> None:
    own_server.forget_log()
    world = BinlogWorld(own_server)
    world.sql("CREATE TABLE t (id INT PRIMARY KEY, a TEXT)", "INSERT INTO t VALUES (1, 'a')")
    world.replicate("t")
    last = place_of(world.position)
    assert last is not None
    with connect(world.address) as connection:
        gtids = gtids_at(connection, world.address, last)
    assert gtids
    source, replication = _source(world), replace(_replication(world), captured=world.position, gtids=gtids)
    assert source.require_ours(replication) == world.position
    own_server.forget_log()
    world.sql("INSERT INTO t VALUES (2, REPEAT('x', 5000))")
    with pytest.raises(SourceSetBack, match="was set back"):
        source.require_ours(replication)
    with binary_log(world.request(), world.address, None) as log, pytest.raises(SourceSetBack, match="was set back"):
        log.resume(world.position, Origin(source.system_id(), gtids))


def test_a_transaction_that_was_captured_does_not_come_again(world: BinlogWorld) -> None:
    world.sql("CREATE TABLE t (id INT PRIMARY KEY)")
    world.replicate("t")
    world.sql("INSERT INTO t VALUES (1)")
    end = place_of(world.here())
    assert end is not None
    with connect(world.address) as connection:
        gtids = gtids_at(connection, world.address, end)
    assert gtids
    with binary_log(world.request(), world.address, None) as log:
        log.resume(world.position, Origin(_source(world).system_id(), gtids))
        batch = log.batch(world.position, end.position, {}, heartbeat=False)
        with batch.rows() as chunks, pytest.raises(SourceSetBack, match="was set back"):
            list(chunks)


def _purged(world: BinlogWorld) -> bool:
    world.sql("FLUSH BINARY LOGS")
    files = [row[0] for row in world.sql("SHOW BINARY LOGS")]
    world.sql(f"PURGE BINARY LOGS TO '{files[-1]}'")
    return "test-bin.000001" not in [row[0] for row in world.sql("SHOW BINARY LOGS")]


def test_errors_name_the_source_and_no_password(world: BinlogWorld) -> None:
    address = world.address
    for wrong, kind in (
        (replace(address, port=1), SourceUnreachable),
        (replace(address, password=f"{PASSWORD}x"), SourceRefused),
        (replace(address, database="no_such"), SourceRefused),
        (replace(address, parameters={"ssl_mode": "SOMETIMES"}), SourceRefused),
        (replace(address, parameters={"ssl_mode": "VERIFY_CA", "ssl_ca": "/no/such/file"}), SourceRefused),
    ):
        with pytest.raises(kind) as caught:
            BinlogSource(wrong).system_id()
        assert f"127.0.0.1:{wrong.port}" in str(caught.value)
        assert PASSWORD not in str(caught.value)


def test_sessions_are_in_utc_and_cannot_write(world: BinlogWorld) -> None:
    world.sql("CREATE TABLE t (id INT PRIMARY KEY)")
    with connect(world.address) as connection:
        assert rows_of(connection, "SELECT @@time_zone, @@lock_wait_timeout, @@character_set_client") == [
            ("+00:00", 5, "utf8mb4")
        ]
    with pytest.raises(SourceRefused), connect(world.address) as connection:
        rows_of(connection, f"INSERT INTO {world.database}.t VALUES (1)")


@pytest.mark.parametrize("slow", [False, True])
def test_a_read_never_has_what_is_before_its_place_missing(own_server: BinlogServer, slow: bool) -> None:
    """Under writers: every row that the log has before the place is in a copy of that place. `slow`: between the log
    and the end of a commit there is time.
    """
    world = BinlogWorld(own_server)
    world.sql("CREATE TABLE t (id INT PRIMARY KEY, a INT)", "INSERT INTO t VALUES (0, 0)")
    world.replicate("t")
    if slow:
        mariadb = own_server.kind is SourceKind.MARIADB
        delay = "binlog_commit_wait_usec" if mariadb else "binlog_group_commit_sync_delay"
        world.sql("SET GLOBAL sync_binlog = 1", f"SET GLOBAL {delay} = 30000")
        if mariadb:
            world.sql("SET GLOBAL binlog_commit_wait_count = 10")
    stop = threading.Event()
    writers = [threading.Thread(target=_count, args=(world, number, stop)) for number in (1, 2)]
    for writer in writers:
        writer.start()
    copies = []
    for _ in range(12):
        with connect(world.address) as connection, seen_at(connection, world.address) as place:
            copies.append((place.position.commit, rows_of(connection, f"SELECT id, a FROM {world.database}.t")))
    stop.set()
    for writer in writers:
        writer.join()
    events = [(event["commit"], event["key"]) for event in world.events()]
    exact = world.server.kind is SourceKind.MARIADB
    for commit, rows in copies:
        seen = {f'["{number}"]' for number, _ in rows} - {'["0"]'}
        before = {key for at, key in events if at < commit}
        assert seen == before if exact else seen >= before


def _count(world: BinlogWorld, writer: int, stop: threading.Event) -> None:
    connection = world.server.connection(world.database)
    number = writer
    with connection.cursor() as cursor:
        while not stop.is_set():
            cursor.execute(f"INSERT INTO t VALUES ({number}, {writer})")
            connection.commit()
            number += 2
    connection.close()
