"""The upkeep of a search table, in which the table itself decides whether a job is needed."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.lake.delta_directories import PROTOCOL, add, commit, metadata
from tests.unit.search.tables import METADATA
from tidemark.control.store import ControlStore
from tidemark.model.codec import to_plain
from tidemark.model.jobs import JobResult, JobSpec
from tidemark.model.statements import TransactionKey
from tidemark.model.streams import Addressing, TableRef
from tidemark.search.model.jobs import KeepReport
from tidemark.search.planning.sql import parse_targets
from tidemark.search.worker.definitions import add_search
from tidemark.search.worker.upkeep import KeptSearch, keep_search
from tidemark.streams.worker.limits import JobPaths
from tidemark.streams.worker.runtime import Runtime


@pytest.fixture
def store(sqlite_store: str) -> Iterator[ControlStore]:
    made = ControlStore(sqlite_store)
    yield made
    made.close()


def made(table: Path, table_id: str, versions: int) -> None:
    commit(table, 0, PROTOCOL, metadata(table_id), add("a"))
    for version in range(1, versions):
        commit(table, version, add(f"{table_id}-{version}"))


@pytest.mark.parametrize("versions", [3, 2, 1, 5], ids=lambda count: f"{count} of 3 versions")
def test_a_table_that_was_created_again_is_covered(store: ControlStore, tmp_path: Path, versions: int) -> None:
    table = tmp_path / "orders"
    made(table, "id-1", 3)
    ref = TableRef("shop.orders", f"file://{table}", "id-1", Addressing.LAKE)
    add_search(store, ref, METADATA, parse_targets("EQUALITY(id)"), by="me")

    def run(spec: JobSpec) -> JobResult:
        return JobResult(to_plain(KeepReport(1, 1, 10, 100)))

    def kept() -> KeptSearch:
        runtime = Runtime(store, run=run, paths=JobPaths(f"{tmp_path}/work", f"{tmp_path}/jobs"))
        return keep_search(runtime, ref.path, ref.name, key=TransactionKey("dag", "run", "keep"))

    assert [kept().job, kept().job] == [True, False]
    shutil.rmtree(table)
    made(table, "id-2", versions)
    again = kept()
    assert (again.job, again.search.kept_version, again.search.table.table_id) == (True, versions - 1, "id-2")
    assert not kept().job
