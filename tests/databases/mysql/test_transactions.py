"""The log as events: committed transactions alone, in the order of their commits, each in one batch."""

from __future__ import annotations

import json
import random
import threading
from contextlib import closing, suppress
from itertools import takewhile
from pathlib import Path
from typing import Any

import pymysql
import pytest

from tests.databases.mysql.captured import BinlogWorld
from tidemark.errors import InvalidArgument, SourceRefused
from tidemark.model.source_address import SourceKind
from tidemark.replication.model.jobs import ColumnRules
from tidemark.replication.model.replication import LogPosition, Selection
from tidemark.replication.planning.hiding import hasher
from tidemark.replication.planning.positions import FilePlace, parse_file_place, place_of, position_text
from tidemark.replication.sources.mysql import log_stream
from tidemark.replication.sources.mysql.binlog import GTIDS
from tidemark.replication.sources.mysql.log_stream import LoggedEvent, events_from

TABLE = "CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(50), n INT)"


def _state(events: list[dict[str, Any]], state: dict[str, Any] | None = None) -> dict[str, Any]:
    """Rows by key, after the events."""
    rows = {} if state is None else state
    for event in events:
        change = str(event["change"])
        if change == "TRUNCATE":
            rows.clear()
        elif change == "DELETE":
            assert event["key"] in rows, "a row goes that has not come"
            del rows[event["key"]]
        elif change != "SCHEMA":
            assert (event["key"] in rows) == (change == "UPDATE")
            rows[event["key"]] = json.loads(event["payload"])
    return rows


def _selected(world: BinlogWorld, table: str = "t") -> dict[str, Any]:
    found = world.sql(f"SELECT id, a, n FROM {table}")
    texts = [[None if value is None else str(value) for value in row] for row in found]
    return {f'["{row[0]}"]': dict(zip(("id", "a", "n"), row, strict=True)) for row in texts}


def test_a_row_comes_changes_and_goes(world: BinlogWorld) -> None:
    world.sql(TABLE)
    world.replicate("t")
    world.sql(
        "INSERT INTO t VALUES (1, 'a', NULL), (2, 'b', 2)",
        "UPDATE t SET a = 'c' WHERE id = 1",
        "UPDATE t SET id = 3 WHERE id = 2",
        "DELETE FROM t WHERE id = 1",
        "REPLACE INTO t VALUES (3, 'd', 4)",
        "INSERT INTO t VALUES (3, 'x', 1) ON DUPLICATE KEY UPDATE n = n + 1",
        "TRUNCATE TABLE t",
    )
    events = world.events()
    assert [str(event["change"]) for event in events[:6]] == [
        "INSERT",
        "INSERT",
        "UPDATE",
        "DELETE",
        "INSERT",
        "DELETE",
    ]
    moved = events[3:5]
    assert [(one["key"], one["old_key"], str(one["half"])) for one in moved] == [
        ('["2"]', None, "d"),
        ('["3"]', '["2"]', "i"),
    ]
    assert json.loads(moved[0]["payload"]) == {"id": "2", "a": "b", "n": "2"}
    assert [event["payload"] for event in events[-2:]] == ['{"id":"3","a":"d","n":"5"}', "{}"]
    assert world.found is not None
    assert (world.found.transactions, world.found.total) == (7, len(events) + 1)
    assert world.batch() == []


def test_rolled_back_work_makes_no_event(world: BinlogWorld) -> None:
    world.sql(TABLE)
    world.replicate("t")
    connection = world.server.connection(world.database)
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO t VALUES (1, 'lost', 1)")
        connection.rollback()
        cursor.execute("INSERT INTO t VALUES (2, 'kept', 1)")
        cursor.execute("SAVEPOINT s")
        cursor.execute("INSERT INTO t VALUES (3, 'lost', 1)")
        cursor.execute("ROLLBACK TO SAVEPOINT s")
        cursor.execute("INSERT INTO t VALUES (4, 'kept', 1)")
        connection.commit()
        cursor.execute("INSERT INTO t VALUES (5, 'open', 1)")
        events = world.events()
        connection.rollback()
    connection.close()
    assert [event["key"] for event in events] == ['["2"]', '["4"]']
    assert len({event["commit"] for event in events}) == 1
    assert [event["sequence"] for event in events] == [2, 3], "the schema is the first event"
    assert world.events() == []


def test_transactions_come_in_the_order_of_their_commits(world: BinlogWorld) -> None:
    world.sql(TABLE)
    world.replicate("t")
    first, second = (world.server.connection(world.database) for _ in range(2))
    for connection, number in ((first, 1), (second, 2)):
        with connection.cursor() as cursor:
            cursor.execute(f"INSERT INTO t VALUES ({number}, 'x', 0)")
    second.commit()
    first.commit()
    for connection in (first, second):
        connection.close()
    events = world.events()
    assert [event["key"] for event in events] == ['["2"]', '["1"]']
    assert events[0]["commit"] < events[1]["commit"]


def test_a_batch_ends_behind_the_transaction_with_which_it_has_enough(world: BinlogWorld) -> None:
    world.sql(TABLE)
    world.replicate("t")
    for number in range(3):
        world.sql(f"INSERT INTO t VALUES ({10 * number}, 'x', 0), ({10 * number + 1}, 'x', 0)")
    sizes = []
    while events := world.events(max_events=1):
        sizes.append(len(events))
        assert len({event["commit"] for event in events}) == 1
    assert sizes == [2, 2, 2]


def test_every_position_is_half_open(world: BinlogWorld) -> None:
    """Batches that are cut at any commit have each transaction once."""
    world.sql(TABLE)
    world.replicate("t")
    begin = world.position
    for number in range(4):
        world.sql(f"INSERT INTO t VALUES ({number}, 'x', 0)")
    whole = world.events()
    end, schemas = world.position, world.schemas
    for cut in dict.fromkeys(event["commit"] for event in whole):
        world.position, world.schemas = begin, schemas
        before = world.events(LogPosition(cut))
        assert world.position == LogPosition(cut)
        after = world.events(end)
        assert [event["key"] for event in before + after] == [event["key"] for event in whole]
        assert all(event["commit"] < cut for event in before)


def test_a_position_inside_a_transaction_is_refused(world: BinlogWorld) -> None:
    """Else its rows would have no position, by which a target knows what it has."""
    world.sql(TABLE)
    world.replicate("t")
    start = place_of(world.position)
    assert start is not None
    world.sql("INSERT INTO t VALUES (1, 'x', 0)", "INSERT INTO t VALUES (2, 'y', 0)")
    with closing(events_from(world.address, start)) as logged:
        _begin, *inner = takewhile(lambda event: event.start == start.offset or not is_begin(event), logged)
    assert len(inner) >= 3
    for event in inner:
        world.position = FilePlace.of_file(event.file, event.start).position
        with pytest.raises(SourceRefused, match="inside a transaction, not where one begins"):
            world.events()


def is_begin(event: LoggedEvent) -> bool:
    return event.header.kind in GTIDS


def test_a_large_transaction_comes_in_chunks_and_is_one_batch(world: BinlogWorld) -> None:
    world.sql(TABLE, "CREATE TABLE s (n INT PRIMARY KEY)")
    world.replicate("t")
    world.sql("INSERT INTO s VALUES " + ", ".join(f"({n})" for n in range(250)))
    world.sql("INSERT INTO t SELECT x.n * 250 + y.n, REPEAT('x', 20), x.n FROM s x, s y")
    chunks = world.chunks(max_events=10)
    assert len(chunks) >= 3
    assert sum(len(chunk) for chunk in chunks) == 250 * 250 + 1
    assert len({row["commit"] for chunk in chunks for row in chunk}) == 1


def test_a_table_without_a_key_has_its_rows_before_and_after(world: BinlogWorld) -> None:
    world.sql("CREATE TABLE bag (a INT, b VARCHAR(5))")
    world.replicate("bag")
    world.sql("INSERT INTO bag VALUES (1, 'x'), (1, 'x')", "UPDATE bag SET b = 'y' LIMIT 1", "DELETE FROM bag LIMIT 1")
    events = world.events()
    assert [str(event["change"]) for event in events] == [
        "INSERT",
        "INSERT",
        "UPDATE-DELETE",
        "UPDATE-INSERT",
        "DELETE",
    ]
    assert {event["key"] for event in events} == {None}
    assert [event["payload"] for event in events[2:4]] == ['{"a":"1","b":"x"}', '{"a":"1","b":"y"}']


def test_tables_that_nobody_captures_count_in_no_number(world: BinlogWorld) -> None:
    """`nth` counts events with rows of a transaction, whichever tables are captured, so that uuids stay the same."""
    world.sql(TABLE, "CREATE TABLE u (id INT PRIMARY KEY, a INT)")
    world.replicate("t")
    connection = world.server.connection(world.database)
    with connection.cursor() as cursor:
        for statement in ("INSERT INTO u VALUES (1, 1)", "INSERT INTO t VALUES (1, 'a', 1)", "UPDATE u SET a = 2"):
            cursor.execute(statement)
        cursor.execute("INSERT INTO t VALUES (2, 'a', 1), (3, 'a', 1)")
    connection.commit()
    connection.close()
    alone = [(event["key"], event["nth"], event["row"]) for event in world.events()]
    assert alone == [('["1"]', 2, 0), ('["2"]', 4, 0), ('["3"]', 4, 1)]


def test_events_have_the_facts_of_their_transaction(world: BinlogWorld) -> None:
    world.sql(TABLE)
    world.replicate("t")
    world.sql("INSERT INTO t VALUES (1, 'a', 1)")
    (event,) = world.events()
    ((server_id,),) = world.sql("SELECT @@server_id")
    assert event["server_id"] == server_id
    variable = "gtid_current_pos" if world.server.kind is SourceKind.MARIADB else "gtid_executed"
    ((executed,),) = world.sql(f"SELECT @@GLOBAL.{variable}")
    number = event["gtid"].rpartition("-" if world.server.kind is SourceKind.MARIADB else ":")
    assert executed.endswith(number[2])
    assert executed.startswith(number[0])
    ((now,),) = world.sql("SELECT UNIX_TIMESTAMP() * 1000000")
    assert 0 <= now - event["at"] + 1_000_000 < 60_000_000
    place = place_of(LogPosition(event["commit"]))
    assert place is not None
    assert (place.file, place.offset < event["place"]) == (event["file"], True)
    assert parse_file_place(position_text(LogPosition(event["commit"]))) == place


def test_a_log_goes_on_in_the_next_file(world: BinlogWorld) -> None:
    world.sql(TABLE)
    world.replicate("t")
    for number in range(3):
        world.sql(f"INSERT INTO t VALUES ({number}, 'x', 0)", "FLUSH BINARY LOGS")
    events = world.events()
    assert [event["key"] for event in events] == ['["0"]', '["1"]', '["2"]']
    assert len({event["file"] for event in events}) == 3
    assert [event["commit"] for event in events] == sorted(event["commit"] for event in events)


def test_a_place_that_cannot_be_asked_for_is_found_from_the_start_of_its_file(
    world: BinlogWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind a transaction of 4 GB, since a replica asks for a place of 32 bits."""
    world.sql(TABLE, "FLUSH BINARY LOGS")
    world.sql("INSERT INTO t VALUES (0, 'x', 0)")
    world.replicate("t")
    monkeypatch.setattr(log_stream, "FARTHEST", 4)
    world.sql("INSERT INTO t VALUES (1, 'x', 0)", "FLUSH BINARY LOGS", "INSERT INTO t VALUES (2, 'x', 0)")
    assert [event["key"] for event in world.events()] == ['["1"]', '["2"]']
    assert world.events() == []


def test_concurrent_writers_leave_the_state_that_a_query_sees(world: BinlogWorld) -> None:
    """Random statements of several sessions, batches of any size between them."""
    world.sql(TABLE)
    world.replicate("t")
    writers = [threading.Thread(target=_write, args=(world, seed)) for seed in range(3)]
    for writer in writers:
        writer.start()
    state: dict[str, Any] = {}
    sizes: list[int] = []
    while any(writer.is_alive() for writer in writers) or world.position < world.here():
        batch = world.batch(max_events=1 + 17 * len(sizes) % 30)
        state = _state(batch, state)
        sizes.append(len(batch))
    assert state == _selected(world)
    assert len(sizes) > 10


def _write(world: BinlogWorld, seed: int) -> None:
    """A transaction that a deadlock ends is rolled back by the server; the next one follows."""
    chance = random.Random(seed)
    connection = world.server.connection(world.database)
    with connection.cursor() as cursor:
        for number in range(120):
            with suppress(pymysql.err.OperationalError):
                for _ in range(chance.randint(1, 4)):
                    one, other = chance.randint(1, 60), chance.randint(1, 60)
                    cursor.execute(
                        chance.choice(
                            [
                                f"REPLACE INTO t VALUES ({one}, 'w{seed}', {number})",
                                f"UPDATE IGNORE t SET id = {other} WHERE id = {one}",
                                f"UPDATE t SET n = {number} WHERE id = {one}",
                                f"DELETE FROM t WHERE id = {one}",
                            ]
                        )
                    )
                connection.rollback() if chance.random() < 0.2 else connection.commit()
    connection.close()


def test_hidden_columns_are_hidden_at_the_first_hand(world: BinlogWorld) -> None:
    world.hash_secret = "a secret of sixteen characters"
    world.sql("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), mail VARCHAR(20), pin BINARY(2), gone INT)")
    rules = ColumnRules(Selection((), ("*.t.gone",)), mask=("*.t.name",), hash=("*.t.mail", "*.t.pin"))
    world.replicate("t", rules=rules)
    world.sql("INSERT INTO t VALUES (1, 'Ann', 'a@b', x'0A00', 5)")
    (event,) = world.events()
    hashed = hasher(world.hash_secret)
    assert json.loads(event["payload"]) == {"id": "1", "name": "****", "mail": hashed("a@b"), "pin": hashed("0a00")}


def test_no_secret_hashes_nothing(world: BinlogWorld) -> None:
    world.sql(TABLE)
    world.replicate("t", rules=ColumnRules(hash=("*.t.a",)))
    world.sql("INSERT INTO t VALUES (1, 'a', 1)")
    with pytest.raises(InvalidArgument, match="cannot be hashed"):
        world.batch()


def test_two_phase_transactions_are_refused_by_name(world: BinlogWorld) -> None:
    world.sql(TABLE)
    world.replicate("t")
    connection = world.server.connection(world.database)
    with connection.cursor() as cursor:
        for statement in ("XA START 'x'", "INSERT INTO t VALUES (1, 'a', 1)", "XA END 'x'", "XA PREPARE 'x'"):
            cursor.execute(statement)
        cursor.execute("XA ROLLBACK 'x'")
    connection.close()
    before = world.position
    with pytest.raises(SourceRefused, match="two-phase"):
        world.batch()
    assert world.position == before


def test_a_load_and_a_function_in_statement_format_are_refused_by_name(world: BinlogWorld, tmp_path: Path) -> None:
    """The log has neither as the statement of a query alone."""
    world.sql(
        TABLE,
        "CREATE FUNCTION f() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO t(id) VALUES (9); RETURN 1;"
        " END",
    )
    world.replicate("t")
    begin = world.position
    file = tmp_path / "rows"
    file.write_text("1\ta\t2\n")
    world.sql("SET GLOBAL local_infile = ON")
    for statement in ("SELECT f()", f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE t"):
        with closing(world.server.connection(world.database, local_infile=True)) as connection:
            with connection.cursor() as cursor:
                cursor.execute("SET SESSION binlog_format = STATEMENT")
                cursor.execute(statement)
            connection.commit()
        with pytest.raises(SourceRefused, match="STATEMENT"):
            world.batch()
        world.position = world.here()
    assert len(_selected(world)) == 2
    assert begin < world.position
