"""Rows that break a constraint of the target go to a quarantine table, all others to the target."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.engine.quarantine_world import World, world
from tidemark.delivery.model.quarantine import AT, CONSTRAINTS, FROM, QUARANTINE_COLUMNS, RUN, STREAM, TARGET, TO
from tidemark.errors import ConstraintViolated, QuarantineDoesNotFit
from tidemark.model.streams import ACTION, IS_UPDATE, ROW_ID

pytestmark = pytest.mark.spark
__all__ = ["world"]

DEFAULTS = "TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')"
ROWS = {1: 1, 2: -1, 3: None, 4: 300, 5: 0}

# name: columns, constraints c0 and c1, what each bad row breaks
KINDS: dict[str, tuple[str, tuple[str, ...], dict[int, list[str]]]] = {
    "check": ("id INT, v INT", ("v > 0",), {2: ["CHECK c0"], 3: ["CHECK c0"], 5: ["CHECK c0"]}),
    "two_checks": (
        "id INT, v INT",
        ("v > 0", "id < 3"),
        {2: ["CHECK c0"], 3: ["CHECK c0", "CHECK c1"], 4: ["CHECK c1"], 5: ["CHECK c0", "CHECK c1"]},
    ),
    "check_that_fails": ("id INT, v INT", ("300 / v > 0",), {2: ["CHECK c0"], 3: ["CHECK c0"], 5: ["CHECK c0"]}),
    "not_null": ("id INT, v INT NOT NULL", (), {3: ["NOT NULL v"]}),
    "narrower": (
        "id INT, v TINYINT",
        ("v > 0",),
        {2: ["CHECK c0"], 3: ["CHECK c0"], 4: ["TINYINT v"], 5: ["CHECK c0"]},
    ),
    "generated": (
        "id INT, v INT GENERATED ALWAYS AS (id * 75)",
        (),
        {1: ["GENERATED v"], 2: ["GENERATED v"], 3: ["GENERATED v"], 5: ["GENERATED v"]},
    ),
    "default": (
        "id INT, v INT, w INT DEFAULT 5, g INT GENERATED ALWAYS AS (v + w)",
        ("w > 4", "g < 10"),
        {3: ["CHECK c1"], 4: ["CHECK c1"]},
    ),
    "time": (
        "id INT, v INT",
        ("v < 3 OR current_timestamp() < '2020-01-01'",),
        {3: ["CHECK c0"], 4: ["CHECK c0"]},
    ),
}


@pytest.mark.parametrize("keys", [(), ("id",)], ids=["append", "merge"])
def test_each_kind_of_constraint_sorts_the_rows(world: World, keys: tuple[str, ...]) -> None:
    """All in one transaction, with one quarantine for all targets."""
    world.source()
    for kind, (columns, checks, _) in KINDS.items():
        properties = DEFAULTS if "DEFAULT" in columns else ""
        world.sql(f"CREATE TABLE {world.name(kind)} ({columns}) USING delta {properties}")
        for number, check in enumerate(checks):
            world.sql(f"ALTER TABLE {world.name(kind)} ADD CONSTRAINT c{number} CHECK ({check})")
    world.sql("INSERT INTO {orders} VALUES (1, 1), (2, -1), (3, NULL), (4, 300), (5, 0)")
    with world.lake.transaction() as tx:
        for kind in KINDS:
            place, bad = f"{world.root}/{kind}", f"{world.root}/bad"
            if keys:
                tx.merge("s", place, keys, quarantine=bad)
            else:
                tx.append("s", place, quarantine=bad)
    found = world.rows("bad", ["id", "v", f"`{TARGET}`", f"`{CONSTRAINTS}`"])
    for kind, (_, _, broken) in KINDS.items():
        good = [(id_, v) for id_, v in ROWS.items() if id_ not in broken]
        assert [row[:2] for row in world.rows(kind)] == good, kind
        assert [(r[0], r[1], r[3]) for r in found if r[2].endswith(f"/{kind}")] == [
            (id_, ROWS[id_], names) for id_, names in broken.items()
        ], kind
    done = tx._result
    assert done is not None
    assert (done.rows, done.quarantined) == (len(ROWS) * len(KINDS) - len(found), len(found))


def test_nested_columns_and_texts_that_are_too_long_or_say_no_number(world: World) -> None:
    world.source("id INT, t STRING, s STRUCT<x: INT, y: STRING>, l ARRAY<STRING>, n STRING")
    world.target("id INT, t VARCHAR(2), s STRUCT<x: INT NOT NULL, y: CHAR(1)>, l ARRAY<VARCHAR(2)>, n DECIMAL(4,1)")
    world.sql(
        "INSERT INTO {orders} VALUES (1, 'ab', named_struct('x', 1, 'y', 'a'), array('ab'), '12.5'), "
        "(2, 'abc', named_struct('x', 1, 'y', 'a'), array(), '1'), (3, NULL, NULL, NULL, NULL), "
        "(4, 'a', named_struct('x', 1, 'y', 'ab'), NULL, '2'), "
        "(5, 'a', named_struct('x', 1, 'y', 'a'), array('a', 'abc'), 'twelve')"
    )
    world.write()
    assert [row[0] for row in world.rows()] == [1]
    assert world.bad("id", "t", "n") == [
        (2, "abc", "1", ["VARCHAR(2) t"]),
        (3, None, None, ["NOT NULL s.x"]),
        (4, "a", "2", ["STRUCT<X:INT,Y:CHAR(1)> s"]),
        (5, "a", "twelve", ["DECIMAL(4,1) n", "ARRAY<VARCHAR(2)> l"]),
    ]


def test_spaces_at_the_end_of_a_char_key_make_no_other_key(world: World) -> None:
    """A bad half keeps the other half back, and what the target has under the key is found."""
    world.source("id STRING, v STRING").target("id CHAR(4), v VARCHAR(3), w INT", "w IS NULL OR v <> 'q'")
    world.sql("INSERT INTO {orders} VALUES ('d', 'x'), ('e', 'x')")
    assert world.write("id").quarantined == 0
    world.sql(
        "INSERT INTO {target} VALUES ('f   ', 'x', 1)",
        "UPDATE {orders} SET id = 'd  ', v = 'too long' WHERE id = 'd'",
        "UPDATE {orders} SET id = 'e  ', v = 'y' WHERE id = 'e'",
        "INSERT INTO {orders} VALUES ('f', 'q')",
    )
    world.write("id")
    assert world.rows(columns=["trim(id)", "v", "w"]) == [("d", "x", None), ("e", "y", None), ("f", "x", 1)]
    bad = [("d", "x", []), ("d", "too long", ["VARCHAR(3) v"]), ("f", "q", ["CHECK c0"])]
    assert world.bad("trim(id)", "v") == sorted(bad, key=repr)


def test_a_merge_keeps_what_it_has_under_a_bad_key_and_later_good_changes_apply(world: World) -> None:
    world.source().target("id INT, v INT", "v > 0")
    world.sql("INSERT INTO {orders} VALUES (1, 1), (2, 2), (3, 3), (4, 4)")
    assert world.write("id").quarantined == 0
    world.sql(
        "UPDATE {orders} SET v = -1 WHERE id = 1",
        "UPDATE {orders} SET v = 20 WHERE id = 2",
        "DELETE FROM {orders} WHERE id = 3",
        "UPDATE {orders} SET id = 5, v = -5 WHERE id = 4",
    )
    done = world.write("id")
    assert world.rows() == [(1, 1), (2, 20)]  # 4 is gone from the source, 5 is in quarantine
    assert world.bad("id", "v", "`METADATA$ACTION`") == [
        (1, -1, "INSERT", ["CHECK c0"]),
        (1, 1, "DELETE", []),
        (5, -5, "INSERT", ["CHECK c0"]),
    ]
    assert (done.rows, done.quarantined) == (3, 3)
    world.sql("UPDATE {orders} SET v = 10 WHERE id = 1", "DELETE FROM {orders} WHERE id = 5")
    assert world.write("id").quarantined == 0
    assert world.rows() == [(1, 10), (2, 20)]


def test_a_merge_asks_a_constraint_with_what_the_row_has_and_does_not_get(world: World) -> None:
    world.source().target("id INT, v INT, most INT", "most IS NULL OR v <= most")
    world.sql("INSERT INTO {target} VALUES (1, 0, 5), (2, 0, NULL)", "INSERT INTO {orders} VALUES (1, 6), (2, 6)")
    world.write("id")
    assert world.rows() == [(1, 0, 5), (2, 6, None)]
    assert world.bad() == [(1, 6, ["CHECK c0"])]


def test_a_key_that_does_not_fit_is_quarantined_with_its_delete(world: World) -> None:
    world.source("id STRING, v INT").target("id INT, v INT")
    world.sql("INSERT INTO {orders} VALUES ('1', 1), ('x', 2), ('y', 3), (NULL, 4)")
    world.write("id")
    world.sql("DELETE FROM {orders} WHERE id = 'x' OR id = '1'")
    world.write("id")
    assert world.rows() == [(None, 4)]
    assert world.bad("id", "`METADATA$ACTION`") == [
        ("x", "DELETE", ["INT id"]),
        ("x", "INSERT", ["INT id"]),
        ("y", "INSERT", ["INT id"]),
    ]


def test_of_every_change_the_last_image_of_a_key_counts(world: World) -> None:
    world.source(mode="every_change").target("id INT, v INT", "v > 0")
    world.sql("INSERT INTO {orders} VALUES (1, -1), (2, 1)", "UPDATE {orders} SET v = -v")
    done = world.write("id")
    assert world.rows() == [(1, 1)]
    assert sorted(row[1] for row in world.bad()) == [-1, 1, 1]
    assert done.quarantined == 3


def test_the_quarantine_says_of_each_row_why_whose_which_and_when_and_columns_are_added(world: World) -> None:
    mapped = "'delta.columnMapping.mode' = 'name'"
    world.source("id INT, `odd name` INT NOT NULL, n TIMESTAMP_NTZ", properties=f", {mapped}")
    world.target("id INT, `odd name` INT", "`odd name` > 0", properties=f"TBLPROPERTIES ({mapped})")
    world.sql("ALTER TABLE {target} SET TBLPROPERTIES ('delta.feature.timestampNtz' = 'supported')")
    world.sql("INSERT INTO {orders} VALUES (1, 1, NULL), (2, -1, TIMESTAMP_NTZ'2026-01-01 00:00:00')")
    before = datetime.now(UTC)
    done = world.write(evolution="add")
    assert world.rows() == [(1, 1, None)]
    facts = [f"`{name}`" for name in (STREAM, TARGET, RUN, FROM, TO)]
    ((id_, odd, *said),) = world.rows("bad", ["id", "`odd name`", *facts])
    assert (id_, odd, said) == (2, -1, ["s", f"{world.root}/target", str(done.key), 0, 1])
    ((at,),) = world.rows("bad", [f"`{AT}`"])
    assert before.timestamp() <= at.timestamp() <= datetime.now(UTC).timestamp()
    names = [field.name for field in world.spark.read.format("delta").load(f"{world.root}/bad").schema]
    assert names == [*QUARANTINE_COLUMNS, "id", "odd name", "n", ACTION, IS_UPDATE, ROW_ID]


def test_all_rows_may_be_bad_and_where_none_is_the_quarantine_gets_an_empty_commit(world: World) -> None:
    world.source().target("id INT, v INT", "v > 0")
    world.sql("INSERT INTO {orders} VALUES (1, -1), (2, -2)")
    assert (world.write().quarantined, world.rows()) == (2, [])
    heads = world.log("bad").head(), world.log("target").head()
    world.sql("INSERT INTO {orders} VALUES (3, 3)")
    assert (world.write().quarantined, world.rows()) == (0, [(3, 3)])
    assert (world.log("bad").head(), world.log("target").head()) == (heads[0] + 1, heads[1] + 1)
    (last,) = world.log("bad").commits(heads[0], heads[0] + 1)
    assert (last.adds, len(last.transactions)) == ((), 1)


def test_streams_share_a_quarantine_and_what_is_none_or_the_target_itself_is_refused(world: World) -> None:
    world.source().target("id INT, v INT", "v > 0")
    world.sql("INSERT INTO {orders} VALUES (1, -1)")
    for wrong in ("orders", "target"):
        with pytest.raises(QuarantineDoesNotFit, match=r"QUARANTINE\$|same plan"):
            world.write(quarantine=wrong)
    world.write()
    world.sql("CREATE TABLE {other} (id STRING, w INT) USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    world.lake.create_stream("t", on=f"{world.root}/other")
    world.sql("INSERT INTO {other} VALUES ('a', 1)")
    with pytest.raises(QuarantineDoesNotFit, match="column id is string, there int"), world.lake.transaction() as tx:
        tx.append("t", f"{world.root}/target", schema_evolution="add", quarantine=f"{world.root}/bad")
    assert (world.rows(), world.bad()) == ([], [(1, -1, ["CHECK c0"])])
    world.sql("ALTER TABLE {other} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')")
    world.sql("ALTER TABLE {other} RENAME COLUMN id TO name")
    world.lake.create_stream("u", on=f"{world.root}/other", show_initial_rows=True)
    with world.lake.transaction() as tx:
        tx.append("u", f"{world.root}/target", schema_evolution="add", quarantine=f"{world.root}/bad")
    assert world.rows("bad", ["id", "name", "w", f"`{STREAM}`"]) == [(1, None, None, "s"), (None, "a", 1, "u")]


def test_without_a_quarantine_the_error_names_the_constraint_and_says_that_there_may_be_one(world: World) -> None:
    world.source().target("id INT, v INT NOT NULL", "id > 0")
    world.sql("INSERT INTO {orders} VALUES (-1, 1)")
    with pytest.raises(ConstraintViolated, match=r"CHECK constraint c0 \(id > 0\).*quarantine='schema.table'"):
        world.write(quarantine=None)
    world.sql("UPDATE {orders} SET id = 1, v = NULL")
    with pytest.raises(ConstraintViolated, match="NOT NULL constraint violated for column: v"):
        world.write("id", quarantine=None)
    assert world.rows() == []
