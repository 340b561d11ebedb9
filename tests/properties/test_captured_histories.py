"""Random histories, captured: the records, applied to each version of the table, give the next one, and no less would.

Two judges that know nothing of capture: the table's own snapshots, and, where it is on, Delta's change data feed.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from tests.engine.change_streams.captured import Captured, on_one_table
from tests.engine.lakes import Lake
from tests.tiers import some
from tidemark.change_streams.model.change_streams import ChangeStreamOptions, ValueCaptureType
from tidemark.jobs.workspace import Workspace

pytestmark = pytest.mark.spark

BY_KEY = {
    "insert": "INSERT INTO {t} SELECT id + {n} * 100, 'i{n}', id FROM range(3)",
    "update one": "UPDATE {t} SET v = concat(v, '{n}') WHERE k % 3 = {n} % 3",
    "update both": "UPDATE {t} SET v = 'b{n}', w = w + 1 WHERE k % 2 = 0",
    "update nothing": "UPDATE {t} SET v = v, w = w",
    "forget": "UPDATE {t} SET v = NULL WHERE k % 4 < 2",
    "delete": "DELETE FROM {t} WHERE k % 4 = {n} % 4",
    "merge": "MERGE INTO {t} USING (SELECT id k FROM range(6)) s ON {t}.k = s.k WHEN MATCHED AND s.k < 2 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET w = -{n} WHEN NOT MATCHED THEN INSERT (k, v, w) VALUES (s.k, 'm{n}', NULL)",
    "overwrite": "INSERT OVERWRITE {t} SELECT id, 'o{n}', {n} FROM range({n}, {n} + 4)",
    "optimize": "OPTIMIZE {t}",
    "move keys": "UPDATE {t} SET k = k + 100000 WHERE k % 5 = 0",
}
OF_ROWS = {
    "swap keys": "UPDATE {t} SET k = if(k % 2 = 0, k + 1, k - 1)",
    "restore": "RESTORE TABLE {t} TO VERSION AS OF 1",
}
STATEMENTS = {**BY_KEY, **OF_ROWS}
NEW_ROW = ChangeStreamOptions(value_capture_type=ValueCaptureType.NEW_ROW)
Rows = dict[str, tuple[str | None, str | None]]


@dataclass(frozen=True)
class Plan:
    """What is done to the table, where captures fall between, and how they are made."""

    statements: tuple[str, ...]
    captures: tuple[bool, ...]
    feed: bool
    partitions: int
    split_rows: int
    mods_per_record: int


PLANS = st.builds(
    lambda names, captures, feed, *more: Plan(
        tuple(name for name in names if not feed or name in BY_KEY) or ("insert",), tuple(captures), feed, *more
    ),
    st.lists(st.sampled_from(sorted(STATEMENTS)), min_size=3, max_size=6),
    st.lists(st.booleans(), min_size=6, max_size=6),
    st.booleans(),
    st.integers(1, 3),
    st.sampled_from([1, 1_000_000]),
    st.integers(1, 4),
)


@pytest.mark.parametrize("turn", some(range(30), now=(0,)))
@settings(
    max_examples=2,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
@given(PLANS)
def test_records_lead_from_each_version_to_the_next(spark: SparkSession, turn: int, plan: Plan) -> None:
    with tempfile.TemporaryDirectory() as home, Workspace(f"file://{home}/_tidemark", "test") as workspace:
        lake = Lake(spark, Path(home) / "table", workspace)
        lake.create("k BIGINT, v STRING, w BIGINT", delta__enableChangeDataFeed=str(plan.feed).lower())
        lake.sql("INSERT INTO {t} SELECT id, 'a', id FROM range(8)")
        captured = on_one_table(lake, workspace, partitions=plan.partitions, split_rows=plan.split_rows)
        start = lake.version
        for number, (name, capture) in enumerate(zip(plan.statements, plan.captures, strict=False), 1):
            lake.sql(STATEMENTS[name].replace("{n}", str(number)))
            if capture and lake.version > captured.tables[0].captured:
                captured.capture(lake.version, mods_per_record=plan.mods_per_record)
        if lake.version > captured.tables[0].captured:
            captured.capture(lake.version, mods_per_record=plan.mods_per_record)
        mods = in_order(captured)
        for version in range(start + 1, lake.version + 1):
            assert applied(snapshot(lake, version - 1), mods[version]) == snapshot(lake, version), (version, plan)
        if plan.feed and lake.version > start:
            assert {version: Counter(found) for version, found in mods.items() if found} == native(lake, start)


@pytest.mark.parametrize("capture_type", [ValueCaptureType.NEW_ROW])
def test_whole_rows_are_those_of_the_snapshot(
    spark: SparkSession, tmp_path: Path, capture_type: ValueCaptureType
) -> None:
    with Workspace(f"file://{tmp_path}/_tidemark", "test") as workspace:
        lake = Lake(spark, tmp_path / "table", workspace).create("k BIGINT, v STRING, w BIGINT")
        captured = on_one_table(lake, workspace, options=NEW_ROW)
        for number, name in enumerate(("insert", "merge", "update one", "swap keys"), 1):
            lake.sql(STATEMENTS[name].replace("{n}", str(number)))
        captured.capture(lake.version)
        rows: Rows = {}
        for _, found in sorted(in_order(captured).items()):
            for mod_type, key, new, _ in found:
                rows.pop(key, None)
                if mod_type != "DELETE":
                    rows[key] = (dict(new)["v"], dict(new)["w"])
        assert rows == snapshot(lake, lake.version)


Mod = tuple[str, str, tuple[tuple[str, Any], ...], tuple[tuple[str, Any], ...]]


def in_order(captured: Captured) -> dict[int, list[Mod]]:
    """By version: mod_type, key, new and old values, in the order of their positions."""
    found: dict[int, list[Mod]] = defaultdict(list)
    for row in captured.rows():
        keys, new, old = (json.loads(row[name]) for name in ("keys", "new_values", "old_values"))
        found[row["source_version"]].append(
            (row["mod_type"], keys["k"], tuple(sorted(new.items())), tuple(sorted(old.items())))
        )
    return found


def snapshot(lake: Lake, version: int) -> Rows:
    rows = lake.spark.read.format("delta").option("versionAsOf", version).load(str(lake.path)).collect()
    found = {str(row["k"]): (row["v"], None if row["w"] is None else str(row["w"])) for row in rows}
    assert len(found) == len(rows), "statements keep keys unique"
    return found


def applied(rows: Rows, mods: list[Mod]) -> Rows:
    """The rows after the modifications, each of which must fit those before it and change something."""
    rows = dict(rows)
    for mod_type, key, new, old in mods:
        before = dict(zip(("v", "w"), rows.get(key, ()), strict=False))
        if mod_type == "INSERT":
            assert (before, old) == ({}, ())
            rows[key] = (dict(new)["v"], dict(new)["w"])
        elif mod_type == "DELETE":
            assert (dict(old), new) == (before, ())
            del rows[key]
        else:
            assert new
            assert [name for name, _ in new] == [name for name, _ in old]
            assert all(before[name] == value for name, value in old)
            assert all(before[name] != value for name, value in new)
            after = {**before, **dict(new)}
            rows[key] = (after["v"], after["w"])
    return rows


def native(lake: Lake, start: int) -> dict[int, Counter[Mod]]:
    """What Delta's feed says: images paired by key, a key that only one side has is a DELETE or an INSERT."""
    options = {"readChangeFeed": "true", "startingVersion": start + 1}
    images: dict[int, dict[str, dict[str, dict[str, Any]]]] = defaultdict(lambda: defaultdict(dict))
    for row in lake.spark.read.format("delta").options(**options).load(str(lake.path)).collect():
        values = {"v": row["v"], "w": None if row["w"] is None else str(row["w"])}
        images[row["_commit_version"]][row["_change_type"]][str(row["k"])] = values
    return {version: found for version, of in images.items() if (found := Counter(_mods(of)))}


def _mods(of: dict[str, dict[str, dict[str, Any]]]) -> list[Mod]:
    old, new = of["update_preimage"], of["update_postimage"]
    gone = {**of["delete"], **{key: old[key] for key in old.keys() - new.keys()}}
    come = {**of["insert"], **{key: new[key] for key in new.keys() - old.keys()}}
    found: list[Mod] = [("DELETE", key, (), tuple(sorted(values.items()))) for key, values in gone.items()]
    found += [("INSERT", key, tuple(sorted(values.items())), ()) for key, values in come.items()]
    for key in old.keys() & new.keys():
        names = [name for name in ("v", "w") if old[key][name] != new[key][name]]
        if names:
            after, before = (tuple((name, image[key][name]) for name in names) for image in (new, old))
            found.append(("UPDATE", key, after, before))
    return found
