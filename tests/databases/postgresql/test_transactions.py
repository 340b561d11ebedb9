"""What stands in a slot becomes events: each change of a committed transaction once, in the order of commits."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest

from tests.databases.postgresql.captured import SourceWorld
from tests.postgresql import PostgresServer
from tidemark.model.codec import from_json
from tidemark.replication.model.replication import TableSchema
from tidemark.replication.sources.postgresql.change_log import read_by_functions
from tidemark.replication.sources.postgresql.connection import connect
from tidemark.replication.sources.postgresql.slots import current_position

LARGE = "(SELECT string_agg(md5(i::text || random()), '') FROM generate_series(1, 300) AS i)"


@pytest.fixture
def world(source_server: PostgresServer) -> Iterator[SourceWorld]:
    made = SourceWorld(source_server, "events")
    yield made
    made.close()


def told(world: SourceWorld, **more: bool) -> list[tuple[object, ...]]:
    """Change, payload, key, old key of each event."""
    return [
        (row["change"].value, json.loads(row["payload"]), row["key"], row["old_key"]) for row in world.events(**more)
    ]


@pytest.mark.parametrize("by_protocol", [False, True])
def test_inserts_updates_and_deletes_become_events_with_canonical_texts(world: SourceWorld, by_protocol: bool) -> None:
    world.sql('CREATE TABLE t (id int PRIMARY KEY, "odd % name" text, yes bool, raw bytea)')
    world.replicate("t")
    world.sql(
        """INSERT INTO t VALUES (1, E'a "q" \\\\ é 漢 \\n', true, '\\xdeadbeef')""",
        'UPDATE t SET "odd % name" = NULL, yes = false',
        "DELETE FROM t",
    )
    row = {"id": "1", "odd % name": 'a "q" \\ é 漢 \n', "yes": "true", "raw": "deadbeef"}
    assert told(world, by_protocol=by_protocol) == [
        ("INSERT", row, '["1"]', None),
        ("UPDATE", {**row, "odd % name": None, "yes": "false"}, '["1"]', None),
        ("DELETE", {"id": "1"}, '["1"]', None),
    ]


def test_both_ways_to_read_give_the_same_and_leave_the_slot_where_it_is(world: SourceWorld) -> None:
    confirmed = f"SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = '{world.slot}'"
    world.sql("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE TABLE beside (id int)")
    world.replicate("t")
    before = world.sql(confirmed)
    world.sql("INSERT INTO beside SELECT generate_series(1, 20000)")
    assert world.rows(by_protocol=True) == world.rows() == []  # the server says how far it is, with nothing to send
    world.sql("INSERT INTO t SELECT g, 'v' FROM generate_series(1, 1000) AS g", "TRUNCATE t")
    assert len(world.rows()) == 1002
    assert world.rows(by_protocol=True) == world.rows()
    assert world.sql(confirmed) == before


def test_transactions_are_whole_in_the_order_of_their_commits_and_rolled_back_work_never_shows(
    world: SourceWorld,
) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY)")
    world.replicate("t")
    with connect(world.address, autocommit=False) as one, connect(world.address, autocommit=False) as two:
        first, second = one.cursor(), two.cursor()
        first.execute("SET search_path = public; INSERT INTO t VALUES (1)")
        second.execute("SET search_path = public; INSERT INTO t VALUES (10)")
        first.execute("INSERT INTO t VALUES (2); SAVEPOINT s; INSERT INTO t VALUES (3); ROLLBACK TO s")
        second.execute("INSERT INTO t VALUES (11)")
        two.commit()  # began later, commits first
        first.execute("SAVEPOINT s; INSERT INTO t VALUES (4); RELEASE s")
        one.commit()
        second.execute("INSERT INTO t VALUES (12)")
        two.rollback()
    events = world.events()
    assert [row["key"] for row in events] == ['["10"]', '["11"]', '["1"]', '["2"]', '["4"]']
    assert [row["lsn"] for row in events] != sorted(row["lsn"] for row in events)
    assert [(row["commit"], row["sequence"]) for row in events] == sorted(
        (row["commit"], row["sequence"]) for row in events
    )


def test_rows_at_the_same_place_of_the_log_are_told_apart(world: SourceWorld) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY)")
    world.replicate("t")
    with connect(world.address) as connection:
        connection.cursor().copy_expert("COPY public.t FROM STDIN", io.StringIO("".join(f"{n}\n" for n in range(50))))
    events = world.events()
    assert len({row["lsn"] for row in events}) == 1
    assert [row["nth"] for row in events] == list(range(1, 51))


def test_a_large_value_that_stayed_is_named_and_not_made_up(world: SourceWorld) -> None:
    world.sql(
        "CREATE TABLE t (id int PRIMARY KEY, v text, large text)", "ALTER TABLE t ALTER large SET STORAGE EXTERNAL"
    )
    world.replicate("t")
    world.sql(f"INSERT INTO t VALUES (1, 'a', {LARGE})", "UPDATE t SET v = 'b'", "UPDATE t SET id = 2")
    _, update, gone, come = world.events()
    assert (json.loads(update["payload"]), update["unchanged"]) == ({"id": "1", "v": "b"}, ("large",))
    assert (gone["change"], gone["key"], json.loads(gone["payload"])) == ("DELETE", '["1"]', {"id": "1"})
    assert (come["change"], come["key"], come["old_key"], come["unchanged"]) == ("INSERT", '["2"]', '["1"]', ("large",))


def test_a_whole_identity_fills_in_what_stayed_and_shows_deleted_rows(world: SourceWorld) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY, v text, large text)", "ALTER TABLE t REPLICA IDENTITY FULL")
    world.replicate("t")
    world.sql(f"INSERT INTO t VALUES (1, 'a', {LARGE})", "UPDATE t SET v = 'b'", "UPDATE t SET id = 2", "DELETE FROM t")
    insert, update, gone, come, delete = world.events()
    large = json.loads(insert["payload"])["large"]
    assert json.loads(update["payload"]) == {"id": "1", "v": "b", "large": large}
    assert json.loads(gone["payload"]) == {"id": "1", "v": "b", "large": large}
    assert (json.loads(come["payload"]), come["unchanged"]) == ({"id": "2", "v": "b", "large": large}, None)
    assert json.loads(delete["payload"]) == {"id": "2", "v": "b", "large": large}


def test_an_index_as_identity_is_the_key(world: SourceWorld) -> None:
    world.sql(
        "CREATE TABLE t (a int, b text NOT NULL, c int NOT NULL)",
        "CREATE UNIQUE INDEX i ON t (c, b)",
        "ALTER TABLE t REPLICA IDENTITY USING INDEX i",
    )
    world.replicate("t", keys=("c", "b"))
    world.sql("INSERT INTO t VALUES (1, 'x', 7)", "UPDATE t SET a = 2", "UPDATE t SET b = 'y'", "DELETE FROM t")
    changes = [(change, key, old) for change, _, key, old in told(world)]
    assert changes == [
        ("INSERT", '["x","7"]', None),
        ("UPDATE", '["x","7"]', None),
        ("DELETE", '["x","7"]', None),
        ("INSERT", '["y","7"]', '["x","7"]'),
        ("DELETE", '["y","7"]', None),
    ]


def test_a_key_that_is_stored_out_of_line_is_taken_from_the_old_row_or_named_as_a_problem(world: SourceWorld) -> None:
    world.sql("CREATE TABLE t (id text PRIMARY KEY, v int)", "ALTER TABLE t ALTER id SET STORAGE EXTERNAL")
    world.replicate("t")
    world.sql("INSERT INTO t VALUES (repeat('k', 2500), 1)", "UPDATE t SET v = 2")
    insert, update = world.events()
    assert (update["key"], update["problem"]) in [(insert["key"], None), (None, "toasted_key")]


def test_one_truncate_of_several_tables_is_an_event_of_each(world: SourceWorld) -> None:
    world.sql("CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE b (id int PRIMARY KEY)", "CREATE TABLE c (id int)")
    world.replicate("a", "b")
    world.sql("INSERT INTO a VALUES (1)", "TRUNCATE a, b, c")
    insert, one, other = world.events()
    assert [row["change"] for row in (insert, one, other)] == ["INSERT", "TRUNCATE", "TRUNCATE"]
    assert (one["lsn"], one["commit"]) == (other["lsn"], other["commit"])
    assert len({(row["facts"], row["nth"]) for row in (one, other)}) == 2


def test_columns_change_within_a_transaction(world: SourceWorld) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY, v text)")
    world.replicate("t")
    world.sql("INSERT INTO t VALUES (1, 'a')")
    world.sql(
        "BEGIN; INSERT INTO t VALUES (2, 'b'); ALTER TABLE t ADD more int DEFAULT 7; INSERT INTO t VALUES (3, 'c', 8);"
        "ALTER TABLE t DROP v; INSERT INTO t VALUES (4, 9); COMMIT"
    )
    rows = world.rows()
    assert [(row[6], row[7].value) for row in rows] == [
        (1, "SCHEMA"), (2, "INSERT"), (1, "INSERT"), (2, "SCHEMA"), (3, "INSERT"), (4, "SCHEMA"), (5, "INSERT"),
    ]  # fmt: skip
    schemas = [from_json(TableSchema, row[9]) for row in rows if row[7] == "SCHEMA"]
    assert [[column.name for column in schema.columns] for schema in schemas] == [
        ["id", "v"], ["id", "v", "more"], ["id", "more"],
    ]  # fmt: skip
    assert schemas[1].column("more").filled == "7"
    assert json.loads(rows[-1][9]) == {"id": "4", "more": "9"}


def test_a_schema_that_the_log_has_is_not_told_again(world: SourceWorld) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY)")
    world.replicate("t")
    world.sql("INSERT INTO t VALUES (1)")
    schemas: dict[str, TableSchema] = {}
    assert [row[7] for row in world.rows(schemas=schemas)] == ["SCHEMA", "INSERT"]
    assert [row[7] for row in world.rows(schemas=schemas)] == ["INSERT"]


def test_a_renamed_table_goes_on_under_its_registered_name(world: SourceWorld) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY)")
    world.replicate("t")
    world.sql("INSERT INTO t VALUES (1)", "ALTER TABLE t RENAME TO other", "INSERT INTO other VALUES (2)")
    with connect(world.address) as connection, connect(world.address, autocommit=False) as reading:
        end = current_position(connection)
        reader = world.reader(connection, end)
        list(reader.chunks(read_by_functions(reading, world.slot, "p", end)))
    assert reader.renamed == {"public.t": "public.other"}
    assert reader.events == {"public.t": 2}
    assert [(one.object, one.table) for one in reader.facts[1:]] == [("public_t", "t"), ("public_t", "other")]


def test_excluded_columns_and_tables_that_nobody_captures_never_show(world: SourceWorld) -> None:
    world.sql("CREATE TABLE t (secret text, id int PRIMARY KEY, v text)", "CREATE TABLE other (id int PRIMARY KEY)")
    world.replicate("t", excluded=("secret",))
    world.sql("ALTER PUBLICATION p ADD TABLE other")
    world.sql("INSERT INTO t VALUES ('s', 1, 'v'); INSERT INTO other VALUES (1)", "UPDATE t SET id = 2, secret = 'u'")
    assert told(world) == [
        ("INSERT", {"id": "1", "v": "v"}, '["1"]', None),
        ("DELETE", {"id": "1"}, '["1"]', None),
        ("INSERT", {"id": "2", "v": "v"}, '["2"]', '["1"]'),
    ]
    assert "secret" not in "".join(row[9] for row in world.rows())


def test_messages_are_events_and_one_sign_of_life_is_enough(world: SourceWorld) -> None:
    world.sql(
        "SELECT pg_logical_emit_message(true, 'tidemark', '1')",
        "SELECT pg_logical_emit_message(true, 'tidemark', '2')",
        "SELECT pg_logical_emit_message(false, 'app', 'outside')",
        "BEGIN; SELECT pg_logical_emit_message(true, 'app', E'with \"quotes\"'); COMMIT",
        "BEGIN; SELECT pg_logical_emit_message(true, 'app', 'gone'); ROLLBACK",
    )
    assert [(change, payload["content"]) for change, payload, _, _ in told(world)] == [
        ("HEARTBEAT", "1"),
        ("MESSAGE", "outside"),
        ("MESSAGE", 'with "quotes"'),
    ]


def test_a_batch_begins_and_ends_between_transactions(world: SourceWorld) -> None:
    from tidemark.replication.sources.postgresql.change_log import read_by_functions

    world.sql("CREATE TABLE t (id int PRIMARY KEY)")
    world.replicate("t")
    for first in range(0, 50, 10):
        world.sql(f"INSERT INTO t SELECT generate_series({first}, {first + 9})")
    keys: list[str] = []
    start, batches = 0, 0
    with connect(world.address) as connection:
        end = current_position(connection)
        schemas: dict[str, TableSchema] = {}
        while True:
            with connect(world.address, autocommit=False) as reading:
                reader = world.reader(connection, end, schemas, start=start, max_events=15, chunk_rows=7)
                for chunk in reader.chunks(read_by_functions(reading, world.slot, "p", end)):
                    assert len(chunk) <= 7
                    keys += [str(row[10]) for row in chunk if row[10]]
            batches, start = batches + 1, reader.behind
            if reader.exhausted:
                break
    assert keys == [f'["{number}"]' for number in range(50)]
    assert batches == 3


def test_parts_of_a_partitioned_table_come_as_the_table_itself(world: SourceWorld) -> None:
    world.sql(
        "ALTER PUBLICATION p SET (publish_via_partition_root = true)",
        "CREATE TABLE t (id int PRIMARY KEY, v text) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE high (v text, gone int, id int NOT NULL)",
        "ALTER TABLE high DROP gone",
        "ALTER TABLE t ATTACH PARTITION high FOR VALUES FROM (10) TO (20)",
    )
    world.replicate("t")
    world.sql(
        "INSERT INTO t VALUES (1, 'a'), (11, 'b')", "UPDATE t SET id = 12, v = 'moved' WHERE id = 1", "TRUNCATE t"
    )
    assert told(world) == [
        ("INSERT", {"id": "1", "v": "a"}, '["1"]', None),
        ("INSERT", {"id": "11", "v": "b"}, '["11"]', None),
        ("DELETE", {"id": "1"}, '["1"]', None),  # a row that moves to another part is deleted and inserted
        ("INSERT", {"id": "12", "v": "moved"}, '["12"]', None),
        ("TRUNCATE", {}, None, None),
    ]


def test_ddl_of_a_single_partition_makes_no_event(world: SourceWorld) -> None:
    world.sql(
        "ALTER PUBLICATION p SET (publish_via_partition_root = true)",
        "CREATE TABLE t (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE low PARTITION OF t FOR VALUES FROM (0) TO (10)",
        "CREATE TABLE high PARTITION OF t FOR VALUES FROM (10) TO (20)",
        "CREATE TABLE other (id int PRIMARY KEY)",
    )
    world.replicate("t")
    world.sql("INSERT INTO t VALUES (1), (11)", "TRUNCATE low", "DROP TABLE high", "INSERT INTO other VALUES (21)")
    world.sql("ALTER TABLE t ATTACH PARTITION other FOR VALUES FROM (20) TO (30)", "INSERT INTO t VALUES (22)")
    assert told(world) == [
        ("INSERT", {"id": "1"}, '["1"]', None),
        ("INSERT", {"id": "11"}, '["11"]', None),
        ("INSERT", {"id": "22"}, '["22"]', None),
    ]


def test_a_list_of_columns_and_generated_ones_show_what_is_published(world: SourceWorld) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY, secret text, twice int GENERATED ALWAYS AS (id * 2) STORED, v text)")
    world.replicate("t")
    world.sql("ALTER PUBLICATION p SET TABLE t (id, v)")
    world.sql("INSERT INTO t (id, secret, v) VALUES (1, 's', 'a')")
    assert told(world) == [("INSERT", {"id": "1", "v": "a"}, '["1"]', None)]


def test_a_table_and_a_type_that_are_gone_meanwhile_are_told_to_the_end(world: SourceWorld) -> None:
    world.sql("CREATE TYPE mood AS ENUM ('fine')", "CREATE TABLE t (id int PRIMARY KEY, m mood)")
    world.replicate("t")
    world.sql("INSERT INTO t VALUES (1, 'fine')", "DROP TABLE t", "DROP TYPE mood")
    assert told(world) == [("INSERT", {"id": "1", "m": "fine"}, '["1"]', None)]


def test_a_large_transaction_comes_in_chunks_of_rows_or_of_size(world: SourceWorld) -> None:
    world.sql("CREATE TABLE t (id int PRIMARY KEY, v text)")
    world.replicate("t")
    world.sql("INSERT INTO t SELECT g, repeat('x', 1000) FROM generate_series(1, 500) AS g")
    with connect(world.address) as connection:
        end = current_position(connection)
        for limits, most in (({"chunk_rows": 100}, 100), ({"chunk_size": 20_000}, 21)):
            reader = world.reader(connection, end, **limits)
            with connect(world.address, autocommit=False) as reading:
                sizes = [len(rows) for rows in reader.chunks(read_by_functions(reading, world.slot, "p", end))]
            assert sum(sizes) == 501
            assert max(sizes) <= most


def test_an_update_of_a_row_without_a_key_tells_both_rows(world: SourceWorld) -> None:
    """Also if a large value stayed, which only the row that was has; and one that changed nothing."""
    world.sql(
        "CREATE TABLE t (v text, large text)",
        "ALTER TABLE t ALTER large SET STORAGE EXTERNAL",
        "ALTER TABLE t REPLICA IDENTITY FULL",
    )
    world.replicate("t", keys=())
    world.sql(f"INSERT INTO t VALUES ('a', {LARGE})", "UPDATE t SET v = NULL", "UPDATE t SET v = v, large = 'x'")
    insert, was, now, gone, last = world.events()
    large = json.loads(insert["payload"])["large"]
    assert [one["change"] for one in (was, now, gone, last)] == ["UPDATE-DELETE", "UPDATE-INSERT"] * 2
    assert [json.loads(one["payload"]) for one in (was, now, gone, last)] == [
        {"v": "a", "large": large},
        {"v": None, "large": large},
        {"v": None, "large": large},
        {"v": None, "large": "x"},
    ]
    assert {(one["key"], one["old_key"], one["unchanged"]) for one in (was, now, gone, last)} == {(None, None, None)}
    assert [one["half"] for one in (was, now)] == ["d", "i"]
