"""Clustered tables in the control store that are gone, or are other tables by now."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NoReturn

import pytest

from tests.control.kept_objects import drifted
from tests.unit.lake.delta_directories import add, commit, singers
from tidemark.clustering.model.tables import Goal
from tidemark.clustering.worker.recluster import recluster_table
from tidemark.clustering.worker.tables import (
    drop_key,
    list_clustered,
    recluster_history,
    register_clustered,
    resume_recluster,
    suspend_recluster,
    table_or_registered,
)
from tidemark.clustering.worker.upkeep import tables_to_keep
from tidemark.control.store import ControlStore
from tidemark.errors import ClusteredTableRecreated, InvalidArgument, JobDied, TableNotFound
from tidemark.lake.tables import location_of, table_ref
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import TableRef
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.opening import open_table
from tidemark.streams.worker.runtime import Runtime

NAME = "shop.singers"
KEY = TransactionKey("d", "r", "t")


@pytest.fixture
def store(task_store: str) -> Iterator[ControlStore]:
    made = ControlStore(task_store)
    yield made
    assert drifted(made) == []
    made.close()


@pytest.fixture
def runtime(store: ControlStore) -> Runtime:
    def no_job(*_: object, **__: object) -> NoReturn:
        raise AssertionError("a job was started")

    return Runtime(store, run=no_job, paths=JobPaths("file:///w", "file:///e"))


def created(root: Path, *, keyed: bool = True) -> TableRef:
    """The table, with a clustering key and two files that overlap."""
    path = singers(root, NAME)
    key = json.dumps({"clusteringColumns": [["SingerId"]] if keyed else [], "domainName": "delta.clustering"})
    domain = {"domainMetadata": {"domain": "delta.clustering", "configuration": key, "removed": False}}
    stats = json.dumps({"numRecords": 2, "minValues": {"SingerId": 1}, "maxValues": {"SingerId": 5}})
    commit(path, 1, domain, add("a", stats=stats), add("b", stats=stats))
    return table_ref(NAME, str(root))


def recreated(root: Path, *, keyed: bool = False) -> TableRef:
    """Another table with the same name, at the same path."""
    shutil.rmtree(root / "shop")
    (root / "shop" / "other").mkdir(parents=True)  # so that the id is another one
    return created(root, keyed=keyed)


def found(store: ControlStore, root: Path, name: str = NAME) -> TableRef:
    return table_or_registered(store, partial(table_ref, lake_root=str(root)), name, location_of(name, str(root))[0])


def test_a_table_that_is_gone_is_suspended_resumed_and_unregistered(runtime: Runtime, tmp_path: Path) -> None:
    store = runtime.store
    kept = register_clustered(store, open_table, created(tmp_path), by="me")
    shutil.rmtree(tmp_path / "shop")
    for name in (NAME, f"{tmp_path}/shop/singers"):
        assert found(store, tmp_path, name) == kept.table
    assert suspend_recluster(store, open_table, kept.table, by="me").suspended is not None
    assert resume_recluster(store, open_table, kept.table, by="me").suspended is None
    drop_key(runtime, found(store, tmp_path), key=KEY, by="me")
    assert list_clustered(store) == ()
    with pytest.raises(TableNotFound):
        found(store, tmp_path)


def test_a_name_that_two_gone_tables_had_leads_to_the_one_at_its_place(runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / "b/shop/other").mkdir(parents=True)  # so that the id is another one
    kept = {lake: created(tmp_path / lake) for lake in ("a", "b")}
    for lake, table in kept.items():
        register_clustered(runtime.store, open_table, table, by="me")
        shutil.rmtree(tmp_path / lake / "shop")
    assert {lake: found(runtime.store, tmp_path / lake) for lake in kept} == kept
    with pytest.raises(TableNotFound):
        found(runtime.store, tmp_path / "c")


def test_tables_whose_paths_differ_by_case_are_told_apart(runtime: Runtime, tmp_path: Path) -> None:
    store = runtime.store
    (tmp_path / "b/shop/other").mkdir(parents=True)  # so that the id is another one
    (tmp_path / "B/shop/one").mkdir(parents=True)
    (tmp_path / "B/shop/two").mkdir()
    kept = [register_clustered(store, open_table, created(tmp_path / lake), by="me") for lake in ("a", "b", "B")]
    for one in kept:
        assert tables_to_keep(store, [one.table.path]) == (one,)
    with pytest.raises(InvalidArgument, match=r"name one of these by its path: .*/a/shop.*, .*/b/shop.*"):
        tables_to_keep(store, [NAME.upper()])
    assert tables_to_keep(store, ["shop.others"]) == ()


def test_a_recreated_table_is_not_reclustered_and_says_how_to_go_on(runtime: Runtime, tmp_path: Path) -> None:
    kept = register_clustered(runtime.store, open_table, created(tmp_path), by="me")
    recreated(tmp_path, keyed=True)
    with pytest.raises(ClusteredTableRecreated, match=r"shop\.singers DROP CLUSTERING KEY"):
        recluster_table(runtime, kept, key=KEY)
    assert "ClusteredTableRecreated" in (list_clustered(runtime.store)[0].problem or "")


def test_a_job_that_failed_is_charged_as_planned_at_each_attempt(runtime: Runtime, tmp_path: Path) -> None:
    def dies(*_: object, **__: object) -> NoReturn:
        raise JobDied(key=str(KEY), exit_code=1, tail="")

    goal = Goal(depth=1, day_bytes=10_000)
    kept = register_clustered(runtime.store, open_table, created(tmp_path), by="me", goal=goal)
    for attempt in (1, 2):
        with pytest.raises(JobDied):
            recluster_table(replace(runtime, run=dies), kept, key=KEY)
        (planned,) = recluster_history(runtime.store, kept.table)
        assert planned.planned_bytes > 0
        assert planned.bytes == attempt * planned.planned_bytes
    tight = replace(goal, day_bytes=2 * planned.planned_bytes)
    done = recluster_table(runtime, kept, key=TransactionKey("d", "next", "t"), goal=tight)
    assert done.why.endswith("and the budget has 0")


@pytest.mark.parametrize("keyed", [True, False])
def test_a_key_or_its_drop_on_a_recreated_table_ends_the_upkeep_of_the_earlier_one(
    runtime: Runtime, tmp_path: Path, *, keyed: bool
) -> None:
    store = runtime.store
    register_clustered(store, open_table, created(tmp_path), by="me")
    now = recreated(tmp_path, keyed=keyed)
    if keyed:
        register_clustered(store, open_table, now, by="me")
    else:
        drop_key(runtime, found(store, tmp_path), key=KEY, by="me")
    assert [one.table for one in list_clustered(store)] == ([now] if keyed else [])
