"""The migrations and schema.py are two tellings of one schema."""

from __future__ import annotations

import re
import threading
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from tests.control.change_stream_model import ChangeStreamWorld, segment
from tests.control.kept_objects import rows_of
from tests.control.test_change_log_retention import Log, expired
from tidemark.change_streams.worker.groups import create_group, pause_group
from tidemark.change_streams.worker.waves import begin_chunks, chunk_failed, plan_wave
from tidemark.control import migrate
from tidemark.control.object_kinds import kind_named
from tidemark.control.schema import all_tables, objects
from tidemark.control.store import ControlStore
from tidemark.model.source_address import SourceKind
from tidemark.model.streams import BaseOffset, StreamMode, TableRef
from tidemark.replication.model.replication import Actor, HeldTable, ObjectName, ReplicationOptions, Selection
from tidemark.replication.store import replications
from tidemark.replication.worker.definitions import create_replication, get_replication
from tidemark.streams.worker.streams import create_stream, get_stream


def test_the_migrated_schema_is_schema_py(store: ControlStore) -> None:
    def differences(connection: sa.Connection) -> list[object]:
        options = {"version_table": migrate.VERSION_TABLE, "compare_type": True, "compare_server_default": True}
        return list(compare_metadata(MigrationContext.configure(connection, opts=options), all_tables()))

    assert store.read(differences) == []


def test_every_table_and_index_is_defined_alike(store: ControlStore) -> None:
    """Autogenerate does not compare partial conditions and constraint names; the DDL itself does."""
    if store.embedded:
        direct = sa.create_engine("sqlite://")
        all_tables().create_all(direct)
        with direct.connect() as connection:
            wanted = _definitions_in_sqlite(connection)
        assert store.read(_definitions_in_sqlite) == wanted
    else:
        store.write(_create_directly)
        assert store.read(lambda c: _definitions_in_postgresql(c, "public")) == store.read(
            lambda c: _definitions_in_postgresql(c, "direct")
        )


def test_there_is_one_line_of_revisions_and_head_is_named() -> None:
    script = ScriptDirectory.from_config(migrate.configuration())
    assert script.get_heads() == [migrate.HEAD]


def test_the_first_revision_can_be_undone_and_applied_again(store: ControlStore) -> None:
    from alembic import command

    store.write(lambda connection: command.downgrade(migrate.configuration(connection), "base"))
    assert store.revision() is None
    store.migrate()
    assert store.revision() == migrate.HEAD


def test_a_stream_of_an_earlier_release_is_a_stream_on_a_table(url: str) -> None:
    store = ControlStore(url, embedded=False)
    store.migrate()
    stream = create_stream(
        store, name="s", source=TableRef("t", "file:///t", "id"), mode=StreamMode.STANDARD, at_version=3, who="me"
    )

    def back_and_forth(connection: sa.Connection) -> None:
        from alembic import command

        command.downgrade(migrate.configuration(connection), "0001")
        migrate.upgrade(connection)

    store.write(back_and_forth)
    assert get_stream(store, "s") == stream
    assert get_stream(store, "s").bases == (BaseOffset(stream.source, 3),)


def test_a_stream_of_an_earlier_release_tells_rows_apart_by_row_id(url: str) -> None:
    store = ControlStore(url, embedded=False)
    store.migrate()
    source = TableRef("t", "file:///t", "id")
    for name, keys in (("by_id", ()), ("by_key", ("a", "B ü"))):
        create_stream(store, name=name, source=source, mode=StreamMode.STANDARD, at_version=3, who="me", keys=keys)
    assert get_stream(store, "by_key").keys == ("a", "B ü")

    def back_and_forth(connection: sa.Connection) -> None:
        from alembic import command

        command.downgrade(migrate.configuration(connection), "0002")
        migrate.upgrade(connection)

    store.write(back_and_forth)
    assert [get_stream(store, name).keys for name in ("by_id", "by_key")] == [(), ()]


def test_a_replication_of_an_earlier_release_has_nothing_excluded_yet(url: str) -> None:
    store = ControlStore(url, embedded=False)
    store.migrate()
    made = create_replication(
        store,
        name="r",
        kind=SourceKind.POSTGRESQL,
        source_conn_id="pg",
        selection=Selection(exclude=("s.t",)),
        options=ReplicationOptions(target="lake"),
        event_log="/nowhere",
        by=Actor("me"),
    )
    name = ObjectName("s", "t")
    held = (HeldTable("1", name, (name,)),)
    store.write(lambda connection: replications.record_held_tables(connection, made.uid, held))
    assert store.read(lambda connection: replications.held_tables(connection, made.uid)) == held

    def back_and_forth(connection: sa.Connection) -> None:
        from alembic import command

        command.downgrade(migrate.configuration(connection), "0009")
        migrate.upgrade(connection)

    store.write(back_and_forth)
    assert store.read(lambda connection: replications.held_tables(connection, made.uid)) == ()
    assert get_replication(store, "r") == made


def test_a_log_that_an_earlier_release_trimmed_has_expired(url: str, tmp_path: Path) -> None:
    store = ControlStore(url, embedded=False)
    store.migrate()
    world, log = ChangeStreamWorld(store, tmp_path), Log()
    token = world.active()[0].token
    world.batch(segment(token, world.clock.now, 3))
    world.clock.go(timedelta(days=2))
    assert world.opened() is None  # all before now is published
    first = expired(world, log)
    world.table.commit(world.clock.go())
    waiting, stream = world.opened(), world.stream
    assert (log.given, waiting.stream.expired_until) == ([first.until], first.until)

    def back_and_forth(connection: sa.Connection) -> list[tuple[str, bool, bool]]:
        from alembic import command

        command.downgrade(migrate.configuration(connection), "0010")
        assert connection.execute(sa.text("SELECT trimmed_until FROM tidemark_change_stream")).scalar() is not None
        batches = connection.execute(sa.text("SELECT state, batch FROM tidemark_capture_batch ORDER BY number"))
        found = [(state, '"trimmed_until":' in text, "expired" in text) for state, text in batches]
        migrate.upgrade(connection)
        return found

    assert store.write(back_and_forth) == [("trimmed", True, False), ("open", True, False)]
    assert (world.stream, world.opened()) == (stream, waiting)
    world.clock.go()
    world.close(waiting, segment(token, world.clock.now, 2))
    assert expired(world, log).rows == 0
    assert len(log.given) == 1  # no job for the batch that the earlier release trimmed
    world.clock.go(timedelta(days=2))
    world.opened()
    assert expired(world, log).until > first.until
    assert len(log.given) == 2
    assert create_group(store, "s", "g", "earliest").start == world.stream.expired_until


def test_a_group_of_an_earlier_release_has_a_failure_without_a_task(url: str, tmp_path: Path) -> None:
    """Its next task is kept."""
    store = ControlStore(url, embedded=False)
    store.migrate()
    world = ChangeStreamWorld(store, tmp_path)
    create_group(store, "s", "g", "earliest")
    left, _ = world.active()
    world.batch(segment(left.token, world.clock.now + timedelta(seconds=1), 7))
    (chunk,) = plan_wave(store, "s", "g", run="dag/r1", max_chunks=9, max_rows=100).chunks
    begin_chunks(store, [chunk], "dag/r1", task="dag/r1/read/0")
    chunk_failed(store, chunk, "dag/r1", "no room", task="dag/r1/read/0")

    def back_and_forth(connection: sa.Connection) -> None:
        from alembic import command

        command.downgrade(migrate.configuration(connection), "0030")
        migrate.upgrade(connection)

    def met_in(connection: sa.Connection) -> list[tuple[str, ...]]:
        return [entry.met_in for entry in kind_named("consumer_group").entries(connection, [chunk.group_uid])]

    store.write(back_and_forth)
    assert store.read(met_in) == [("dag/r1",)]
    begin_chunks(store, [chunk], "dag/r2", task="dag/r2/read/0")
    chunk_failed(store, chunk, "dag/r2", "no room", task="dag/r2/read/0")
    assert store.read(met_in) == [("dag/r2/read/0",)]


def test_a_paused_group_that_an_earlier_release_had_failing_is_paused(url: str, tmp_path: Path) -> None:
    """The page can resume it. A group that is not paused is still failing."""
    store = ControlStore(url, embedded=False)
    store.migrate()
    world = ChangeStreamWorld(store, tmp_path)
    for name in ("failing", "stopped"):
        create_group(store, "s", name, "earliest")
    left, _ = world.active()
    world.batch(segment(left.token, world.clock.now + timedelta(seconds=1), 7))
    for name in ("failing", "stopped"):
        (chunk,) = plan_wave(store, "s", name, run="dag/r1", max_chunks=9, max_rows=100).chunks
        begin_chunks(store, [chunk], "dag/r1")
        chunk_failed(store, chunk, "dag/r1", "no room")
    pause_group(store, "s", "stopped")
    wanted = rows_of(store)

    def back_and_forth(connection: sa.Connection) -> None:
        from alembic import command

        command.downgrade(migrate.configuration(connection), "0034")
        earlier = objects.update().where(objects.c.name == "s/stopped")
        connection.execute(earlier.values(state="failing", severity="failed"))
        migrate.upgrade(connection)

    store.write(back_and_forth)
    states = [wanted[f"consumer_group s/{name}"]["state"] for name in ("failing", "stopped")]
    assert (rows_of(store), states) == (wanted, ["failing", "paused"])


def test_two_migrations_at_once_are_harmless(url: str) -> None:
    ids: list[str] = []

    def migrate_it() -> None:
        store = ControlStore(url, embedded=False)
        store.migrate()
        ids.append(store.store_id)

    threads = [threading.Thread(target=migrate_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(ids), len(set(ids))) == (4, 1)


def test_a_migration_that_fails_in_the_middle_leaves_nothing(url: str) -> None:
    def fail() -> str:
        raise RuntimeError("after the last table was made")

    with pytest.raises(RuntimeError):
        ControlStore(url, new_id=fail).migrate()
    store = ControlStore(url, embedded=False)
    assert store.revision() is None
    store.migrate()


def _definitions_in_sqlite(connection: sa.Connection) -> dict[str, list[str]]:
    query = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%' AND name != :own"
    rows = connection.execute(sa.text(query), {"own": migrate.VERSION_TABLE})
    return {name: _clauses(text) for name, text in rows}


def _clauses(definition: str) -> list[str]:
    """In no order: a column that a migration adds stands last."""
    head, _, rest = definition.partition("(")
    body, _, tail = rest.rpartition(")")
    return sorted(part.strip() for part in (head, tail, *re.split(r",(?![^(]*\))", body)))


def _create_directly(connection: sa.Connection) -> None:
    connection.execute(sa.schema.CreateSchema("direct"))
    all_tables().create_all(connection.execution_options(schema_translate_map={None: "direct"}))


def _definitions_in_postgresql(connection: sa.Connection, schema: str) -> dict[str, str]:
    indexes = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = :schema AND tablename <> :own"
    constraints = (
        "SELECT conname, pg_get_constraintdef(c.oid) FROM pg_constraint c JOIN pg_class t ON t.oid = conrelid"
        " WHERE connamespace = to_regnamespace(:schema) AND relname <> :own"
    )
    columns = (
        "SELECT table_name || '.' || column_name, concat_ws(' ', data_type, character_maximum_length, is_nullable,"
        " column_default) FROM information_schema.columns WHERE table_schema = :schema AND table_name <> :own"
    )
    facts = {"schema": schema, "own": migrate.VERSION_TABLE}
    rows = [row for query in (indexes, constraints, columns) for row in connection.execute(sa.text(query), facts)]
    return {name: text.replace(f"{schema}.", "") for name, text in rows}
