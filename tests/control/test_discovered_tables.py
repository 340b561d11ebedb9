"""What a look at a real source tells of tables that changed without an event, or under other names."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from tests.control.replication_model import ME
from tests.control.source_shop import EVERYTHING, Shop
from tests.postgresql import PostgresServer
from tidemark.control.store import ControlStore
from tidemark.errors import InvalidArgument, ObjectNotReplicable, ReplicationRefused, SourceIsAnother
from tidemark.replication.model.replication import (
    LogPosition,
    ObjectState,
    ReplicationOptions,
    Selection,
    Shown,
    WriteMode,
)
from tidemark.replication.planning.seen_tables import REWRITTEN_BY_ALTER
from tidemark.replication.store.schema import replicated_objects as objects_table
from tidemark.replication.store.schema import replications as replications_table
from tidemark.replication.worker import capture as capturing
from tidemark.replication.worker.backfill_moves import _request as asked_of_a_backfill
from tidemark.replication.worker.catalog_changes import GONE, LEFT_IN_ROWS, TAKEN
from tidemark.replication.worker.definitions import alter_options
from tidemark.replication.worker.status import describe

PRIVATE = "a private default"
MARK = "mark of a secret"
COPY_OF_NOTHING = json.dumps({"expected": 0, "done": 0, "at": "2026-01-01T00:00:00+00:00"})
WITHOUT_SECRET = Selection(include=("public",), exclude=("public.t.secret",))


@pytest.fixture
def shop(copied_store: ControlStore, source_server: PostgresServer) -> Iterator[Shop]:
    made = Shop(copied_store, source_server)
    yield made
    made.drop()


def written(shop: Shop) -> None:
    """As after backfills of tables with rows."""
    shop.replicated()
    shop.set(objects_table, writes=1)


def alerts(shop: Shop) -> list[str]:
    return list(describe(shop.store, "r").alerts)


def columns(shop: Shop, name: str = "public.t") -> dict[str, Shown]:
    return {one.name: one.shown for one in shop.object(name).schema.columns}


def asks(shop: Shop) -> tuple[capturing.CaptureEvents, str]:
    """What the next capture is asked for, and all that a job is told, as text."""
    from tidemark.model.codec import to_json
    from tidemark.replication.store import replicated_objects

    def look(connection: sa.Connection) -> tuple[capturing.CaptureEvents, str]:
        found = replicated_objects.of_replication(connection, shop.replication.uid)
        request = capturing._request(shop.replication, found, LogPosition("FFFF"))
        copies = [to_json(asked_of_a_backfill(shop.replication, one, 1, ())) for one in found]
        return request, to_json(request) + "".join(copies)

    return shop.store.read(look)


def test_a_change_of_rows_without_an_event_flags_the_object_until_its_backfill(shop: Shop) -> None:
    shop.sql("CREATE TYPE mood AS ENUM ('sad')", "ALTER TABLE t ADD m mood")
    written(shop)
    shop.prepare()
    assert shop.object("public.t").needs_backfill is None
    shop.sql("ALTER TYPE mood RENAME VALUE 'sad' TO 'low'")
    shop.prepare()
    one = shop.object("public.t")
    assert (one.state, str(one.needs_backfill).startswith("type public.mood of column m")) == (
        ObjectState.COMPLETED,
        True,
    )
    assert any("public.t is to be backfilled: type public.mood" in one for one in alerts(shop))
    shop.set(objects_table, needs_backfill=None)  # as after a backfill
    shop.prepare()
    assert (shop.object("public.t").needs_backfill, shop.object("public.u").needs_backfill) == (None, None)


@pytest.mark.parametrize(
    ("state", "after"),
    [(ObjectState.PENDING, ObjectState.PENDING), (ObjectState.STOPPED, ObjectState.STOPPED),
     (ObjectState.ACTIVE, ObjectState.PENDING)],
)  # fmt: skip
def test_a_backfill_that_is_asked_for_stays_so_and_one_under_way_begins_again(
    shop: Shop, state: ObjectState, after: ObjectState
) -> None:
    written(shop)
    shop.prepare()
    shop.set(objects_table, state=state.value)
    shop.sql("ALTER TABLE t ALTER secret TYPE text USING secret || '!'")
    shop.prepare()
    one = shop.object("public.t")
    assert (one.state, "altered and its rows were rewritten" in str(one.needs_backfill)) == (after, True)


@pytest.mark.parametrize("copied", [True, False], ids=["copied", "never written"])
def test_a_change_of_a_table_without_rows_counts_once_an_event_comes(shop: Shop, copied: bool) -> None:
    """The event may be from before the change, though it is captured after the look."""
    shop.sql("CREATE TYPE mood AS ENUM ('sad')", "ALTER TABLE t ADD m mood")
    shop.replicated()
    if copied:
        shop.set(objects_table, writes=1, progress=COPY_OF_NOTHING)
    shop.prepare()
    shop.sql("INSERT INTO t (id, m) VALUES (1, 'sad')", "ALTER TYPE mood RENAME VALUE 'sad' TO 'low'")
    shop.prepare()
    shop.sql("ALTER TABLE t ADD n int", "ALTER TABLE t ALTER n TYPE bigint USING n * 2")
    shop.prepare()
    assert shop.object("public.t").needs_backfill is None
    shop.set(objects_table, changed_until=LogPosition("0"))
    shop.prepare()
    one, other = shop.object("public.t"), shop.object("public.u")
    assert (one.state, "of column m has another label" in str(one.needs_backfill)) == (ObjectState.PENDING, True)
    assert (other.state, other.needs_backfill) == (ObjectState.COMPLETED, None)
    shop.set(objects_table, state=ObjectState.COMPLETED.value, needs_backfill=None)
    shop.prepare()
    assert shop.object("public.t").needs_backfill is None
    shop.sql("ALTER TABLE t ALTER n TYPE int USING n / 2")
    shop.prepare()
    assert "column n changed its type" in str(shop.object("public.t").needs_backfill)


def test_an_excluded_column_that_is_renamed_stays_out_and_says_so(shop: Shop) -> None:
    shop.select(WITHOUT_SECRET)
    written(shop)
    shop.prepare()
    shop.sql("ALTER TABLE t RENAME secret TO open")
    prepared = shop.prepare()
    assert prepared.registered is not None
    told = "column secret is called open now, and stays excluded: name public.t.open in exclude, too"
    assert f"public.t: {told}" in alerts(shop)
    assert shop.object("public.t").needs_backfill is None
    captured, _ = asks(shop)
    (held,) = next(one for one in captured.objects if one.name.table == "t").rules.held
    assert (held.number, held.names) == (2, ("secret",))
    shop.prepare()
    assert f"public.t: {told}" in alerts(shop)
    shop.select(Selection(include=("public",), exclude=("public.t.secret", "public.t.open")))
    shop.prepare()
    assert alerts(shop) == []
    shop.select(EVERYTHING)  # nobody hides it any more
    shop.prepare()
    assert "(open)" in str(shop.object("public.t").needs_backfill)


STAYS_OUT = (
    "table public.u is called public.u_old now, and stays excluded. Name public.u_old in exclude, too, or in include,"
    " by exactly this name, to replicate it."
)


def names(shop: Shop) -> list[str]:
    return [one.object.name.text for one in describe(shop.store, "r").objects]


def without_u(shop: Shop) -> None:
    """Table u is excluded, and called u_old since."""
    shop.select(Selection(include=("public",), exclude=("public.u",)))
    written(shop)
    shop.sql("INSERT INTO u VALUES (1)", "ALTER TABLE u RENAME TO u_old")


def test_an_excluded_table_that_is_renamed_stays_out_and_says_so(shop: Shop) -> None:
    without_u(shop)
    for _ in range(2):
        prepared = shop.prepare()
        assert prepared.registered is not None
        assert (prepared.registered.new, names(shop), alerts(shop)) == ((), ["public.t"], [STAYS_OUT])
        assert len(shop.source.published(shop.replication)) == 1
    shop.sql("CREATE TABLE u (id int PRIMARY KEY)", "DROP TABLE t", "ALTER TABLE u_old RENAME TO t")
    shop.prepare()
    assert (names(shop), shop.object("public.t").gone) == (["public.t"], True)
    assert any("table public.u is called public.t now" in one for one in alerts(shop))
    shop.sql("ALTER TABLE t RENAME TO u_old")
    both = Selection(include=("public",), exclude=("public.u", "public.u_*"))
    shop.select(both)
    shop.prepare()
    assert (names(shop), [one for one in alerts(shop) if "stays excluded" in one]) == (["public.t"], [])


@pytest.mark.parametrize(
    "selection",
    [Selection(include=("public", "public.u_old"), exclude=("public.u",)), EVERYTHING,
     Selection(include=("public",), exclude=("public.x",))],
)  # fmt: skip
def test_a_renamed_table_comes_in_when_it_is_named_or_nothing_excludes_it(shop: Shop, selection: Selection) -> None:
    without_u(shop)
    shop.prepare()
    shop.select(selection)
    shop.prepare()
    assert (names(shop), alerts(shop)) == (["public.t", "public.u_old"], [])


def another_cluster(shop: Shop, *texts: str) -> None:
    """The source is restored from a dump, and altered before anybody has looked at it."""
    shop.sql(*texts)
    shop.set(replications_table, system_id="another cluster")
    with pytest.raises(SourceIsAnother):
        shop.prepare()


def test_in_another_cluster_an_excluded_table_is_known_by_its_last_name(shop: Shop) -> None:
    without_u(shop)
    shop.prepare()
    another_cluster(shop, "DROP TABLE u_old", "CREATE TABLE u_old (id int PRIMARY KEY)")
    shop.recover("now")
    shop.prepare()
    assert (names(shop), STAYS_OUT in alerts(shop)) == (["public.t"], True)


def test_what_may_be_an_excluded_table_of_another_cluster_is_refused_until_it_is_named(shop: Shop) -> None:
    without_u(shop)
    shop.prepare()
    another_cluster(shop, "ALTER TABLE u_old RENAME TO x")
    with pytest.raises(ReplicationRefused, match=r"public\.u_old is not found.*public\.x may be that table"):
        shop.recover("now")
    shop.select(Selection(include=("public",), exclude=("public.u", "public.x")))
    shop.recover("now")
    shop.prepare()
    assert names(shop) == ["public.t"]


@pytest.mark.parametrize(
    ("columns_there", "told"),
    [("id int PRIMARY KEY, more int, open text", "column secret is called open now, and stays excluded"),
     ("id int PRIMARY KEY, open_2 text", "column secret is called open_2 now, and stays excluded")],
)  # fmt: skip
def test_in_another_cluster_hidden_columns_are_known_by_their_last_names(
    shop: Shop, columns_there: str, told: str
) -> None:
    shop.sql("ALTER TABLE t ADD more int")
    shop.select(WITHOUT_SECRET)
    written(shop)
    shop.sql("ALTER TABLE t RENAME secret TO open")
    shop.prepare()
    another_cluster(shop, "DROP TABLE t", f"CREATE TABLE t ({columns_there})")
    shop.recover("now")
    (rules,) = [one.rules for one in asks(shop)[0].objects if one.name.table == "t"]
    assert [(held.names, held.shown) for held in rules.held] == [(("secret",), Shown.EXCLUDED)]
    shop.prepare()
    assert any(told in one for one in alerts(shop))
    assert "open" not in str(asks(shop)[0].objects[0].schema)


def test_a_table_of_hidden_columns_that_another_cluster_calls_otherwise_is_refused(shop: Shop) -> None:
    shop.select(WITHOUT_SECRET)
    written(shop)
    shop.sql("ALTER TABLE t RENAME TO t_2")
    shop.prepare()
    another_cluster(shop, "ALTER TABLE t_2 RENAME TO t_3")
    with pytest.raises(ReplicationRefused, match=r"public\.t_2 is not found.*public\.t_3 may be that table"):
        shop.recover("now")
    shop.sql("ALTER TABLE t_3 RENAME TO t_2")
    shop.recover("now")
    shop.prepare()
    assert names(shop) == ["public.t", "public.u"]
    assert "secret" not in str(shop.object("public.t").schema)


def test_a_new_column_beside_hidden_ones_is_told_once(shop: Shop) -> None:
    shop.select(WITHOUT_SECRET)
    written(shop)
    shop.prepare()
    shop.sql("ALTER TABLE t ADD secret2 text")
    shop.prepare()
    assert any("column secret2 is new and replicated as it is" in one for one in alerts(shop))
    shop.prepare()
    assert alerts(shop) == []


def test_hiding_columns_needs_a_backfill_of_what_is_there_once_and_tells_jobs_no_value_of_them(shop: Shop) -> None:
    shop.sql(f"ALTER TABLE t ADD d text DEFAULT '{PRIVATE}'")
    written(shop)
    shop.sql(f"ALTER TABLE t ADD e text DEFAULT '{PRIVATE}'")
    shop.prepare()
    assert shop.object("public.t").needs_backfill is None
    hidden = ReplicationOptions(
        target="lake", mask_columns=("public.t.secret", "*.*.d"), hash_columns=("*.t.e",), hash_mark=MARK
    )
    alter_options(shop.store, "r", hidden, by=ME)
    shop.prepare()
    one = shop.object("public.t")
    assert one.state is ObjectState.PENDING
    assert "hidden otherwise than before (secret, d, e)" in str(one.needs_backfill)
    request, text = asks(shop)
    assert PRIVATE not in text
    assert {one.rules.hash_mark for one in request.objects} == {MARK}
    shop.set(objects_table, state=ObjectState.ACTIVE.value)
    shop.prepare()
    assert shop.object("public.t").state is ObjectState.ACTIVE
    rows = shop.store.read(lambda c: c.execute(sa.select(objects_table)).all())
    assert PRIVATE not in str(rows)


def test_a_table_of_a_wide_publication_that_was_unlogged_is_an_alert_until_the_next_backfill(
    copied_store: ControlStore, source_server: PostgresServer
) -> None:
    shop = Shop(copied_store, source_server, ReplicationOptions(target="lake", publication="theirs"))
    try:
        shop.sql("CREATE PUBLICATION theirs FOR ALL TABLES")
        shop.replicated()
        shop.prepare()
        shop.sql("ALTER TABLE t SET UNLOGGED", "INSERT INTO t VALUES (1)", "ALTER TABLE t SET LOGGED", "TRUNCATE u")
        for _ in range(2):
            shop.prepare()
            assert alerts(shop) == [f"public.t: {REWRITTEN_BY_ALTER}"]
        shop.set(objects_table, seen=None)  # as after a backfill, which knows the catalog of its snapshot
        shop.prepare()
        assert alerts(shop) == []
    finally:
        shop.drop()


@pytest.mark.parametrize("hashed_before", [False, True])
def test_excluding_a_column_later_needs_a_backfill_once(shop: Shop, hashed_before: bool) -> None:
    if hashed_before:
        hashed = ReplicationOptions(target="lake", hash_columns=("public.t.secret",), hash_mark=MARK)
        alter_options(shop.store, "r", hashed, by=ME)
    written(shop)
    shop.prepare()
    shop.select(WITHOUT_SECRET)
    shop.prepare()
    one = shop.object("public.t")
    assert (one.state, "hidden otherwise than before (secret)" in str(one.needs_backfill)) == (
        ObjectState.PENDING,
        True,
    )
    assert shop.object("public.u").needs_backfill is None
    shop.set(objects_table, state=ObjectState.COMPLETED.value, needs_backfill=None)
    shop.prepare()
    assert shop.object("public.t").needs_backfill is None


def test_hiding_a_column_of_an_append_only_target_is_told_and_copies_no_row_twice(shop: Shop) -> None:
    written(shop)
    shop.set(objects_table, mode=WriteMode.APPEND_ONLY.value)
    shop.prepare()
    shop.select(WITHOUT_SECRET)
    shop.prepare()
    assert alerts(shop) == [f"public.t: {LEFT_IN_ROWS.format(columns='secret')}"]
    one = shop.object("public.t")
    assert (one.state, one.needs_backfill) == (ObjectState.COMPLETED, None)


def test_a_masked_key_and_another_secret_are_refused(shop: Shop) -> None:
    masked = ReplicationOptions(target="lake", mask_columns=("public.t.id",))
    alter_options(shop.store, "r", masked, by=ME)
    with pytest.raises(ObjectNotReplicable, match=r"public\.t.*key column id is masked.*hash_columns"):
        shop.prepare()
    hashed = ReplicationOptions(target="lake", hash_columns=("public.t.id",), hash_mark=MARK)
    alter_options(shop.store, "r", hashed, by=ME)
    shop.prepare()
    assert columns(shop) == {"id": Shown.HASHED, "secret": Shown.PLAIN}
    other = ReplicationOptions(target="lake", hash_columns=("public.t.id",), hash_mark="other")
    with pytest.raises(InvalidArgument, match="Restore the old one"):
        alter_options(shop.store, "r", other, by=ME)
    with pytest.raises(InvalidArgument, match=r"schema\.table\.column"):
        alter_options(shop.store, "r", ReplicationOptions(target="lake", mask_columns=("public.t",)), by=ME)
    alter_options(shop.store, "r", masked, by=ME)
    shop.prepare()
    assert "key column id is masked" in str(shop.object("public.t").problem)


@pytest.mark.parametrize("how", ["renamed", "swapped", "dropped", "moved", "replaced"])
def test_a_table_that_goes_by_another_name_or_is_gone_is_an_alert(shop: Shop, how: str) -> None:
    written(shop)
    shop.prepare()
    assert alerts(shop) == []
    shop.sql(
        *{
            "renamed": ("ALTER TABLE t RENAME TO t_old",),
            "swapped": ("ALTER TABLE t RENAME TO x", "ALTER TABLE u RENAME TO t", "ALTER TABLE x RENAME TO u"),
            "dropped": ("DROP TABLE t",),
            "moved": ("CREATE SCHEMA s", "ALTER TABLE t SET SCHEMA s"),
            "replaced": ("ALTER TABLE t RENAME TO t_old", "CREATE TABLE t (id int PRIMARY KEY)"),
        }[how]
    )
    called = "public.t: its table is called {} in the source now; its target keeps its name".format
    told = {
        "renamed": called("public.t_old"),
        "swapped": called("public.u"),
        "dropped": f"public.t: {GONE}",
        "moved": called("s.t"),
        "replaced": called("public.t_old") + TAKEN.format(name="public.t"),
    }[how]
    for _ in range(2):
        shop.prepare()
        assert told in alerts(shop)
        (one,) = (one for one in describe(shop.store, "r").objects if one.object.name.table == "t")
        assert (f"public.t: {one.notices[0]}", one.object.gone) == (told, how == "dropped")
    if how == "swapped":
        assert "public.u: its table is called public.t in the source now; its target keeps its name" in alerts(shop)
    if how == "replaced":
        shop.sql("DROP TABLE t_old")
        shop.prepare()
        assert any("is to be backfilled" in one for one in alerts(shop))


def test_columns_whose_values_are_names_are_listed(shop: Shop) -> None:
    shop.sql("ALTER TABLE t ADD c regclass, ADD r regrole[]")
    assert "public.t has columns whose values are names of other things (c, r)" in str(shop.prepare().warnings)
    shop.select(Selection(include=("public",), exclude=("public.t.c", "public.t.r")))
    assert "names of other things" not in str(shop.prepare().warnings)


def test_generated_columns_are_listed_until_they_are_excluded(shop: Shop) -> None:
    shop.sql("ALTER TABLE t ADD twice int GENERATED ALWAYS AS (id * 2) STORED")
    if shop.takes_generated:
        assert [one for one in shop.prepare().warnings if "generated" in one] == []
        assert "twice" in columns(shop)
        return
    for _ in range(2):
        told = [one for one in shop.prepare().warnings if "generated" in one]
        assert len(told) == 1
        assert "public.t is replicated without its generated columns, which the log does not have: twice" in told[0]
    shop.select(Selection(include=("public",), exclude=("public.t.twice",)))
    assert [one for one in shop.prepare().warnings if "generated" in one] == []
