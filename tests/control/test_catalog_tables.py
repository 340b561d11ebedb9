"""Tables that only a catalog knows: a job finds one once, and it counts while it is at its path."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.guarantees.synthetic_tables import SyntheticTable
from tidemark.control.store import ControlStore
from tidemark.errors import TableNotFound
from tidemark.model.streams import Addressing, TableRef
from tidemark.streams.store import catalog_tables
from tidemark.streams.worker.catalog import known_to_the_store, once_in_the_catalog
from tidemark.streams.worker.opening import open_table

NAME = "unity.shop.orders"
CONN = "tidemark_default"
AT = datetime(2026, 11, 25, tzinfo=UTC)


class Catalog:
    """Stands where a runtime is: it answers FIND_TABLE jobs by a mapping, and counts them."""

    def __init__(self) -> None:
        self.has: dict[str, TableRef] = {}
        self.asked = 0

    def run_job(self, job: object, request: Any, *, key: object) -> Any:
        self.asked += 1
        if request.name not in self.has:
            raise TableNotFound(path=request.name)
        return type("Report", (), {"tables": (self.has[request.name],)})


@pytest.fixture
def catalog() -> Catalog:
    return Catalog()


@pytest.fixture
def find(copied_store: ControlStore, catalog: Catalog) -> Callable[[str], TableRef]:
    def runtime() -> Any:
        return catalog

    return once_in_the_catalog(copied_store, open_named, runtime, connection=CONN, tables=open_table)


def open_named(name: str) -> TableRef:
    return TableRef(name, name, "lake")


def made(path: Path) -> TableRef:
    log = open_table(str(SyntheticTable(path).path))
    return TableRef(NAME, log.uri, log.state().table_id, Addressing.CATALOG)


def test_a_catalog_is_asked_once_for_a_name_and_never_for_others(
    find: Callable[[str], TableRef], catalog: Catalog, tmp_path: Path
) -> None:
    catalog.has[NAME] = made(tmp_path / "orders")
    assert [find(NAME), find(f" {NAME} "), find("shop.orders").table_id] == [catalog.has[NAME]] * 2 + ["lake"]
    assert catalog.asked == 1


def test_it_is_asked_again_when_its_path_has_no_table_or_another_one(
    find: Callable[[str], TableRef], catalog: Catalog, tmp_path: Path
) -> None:
    catalog.has[NAME] = made(tmp_path / "orders")
    find(NAME)
    (tmp_path / "orders").rename(tmp_path / "moved")
    catalog.has[NAME] = made(tmp_path / "elsewhere")
    assert find(NAME) == catalog.has[NAME]
    (tmp_path / "elsewhere").rename(tmp_path / "old")
    catalog.has[NAME] = made(tmp_path / "elsewhere")  # another table at the same place
    assert find(NAME) == catalog.has[NAME]
    assert catalog.asked == 3


def test_an_answer_that_is_none_is_not_kept(find: Callable[[str], TableRef], catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(TableNotFound):
        find(NAME)
    catalog.has[NAME] = made(tmp_path / "orders")
    assert find(NAME) == catalog.has[NAME]


def test_what_is_forgotten_is_unknown_and_a_later_find_is_not_forgotten(
    copied_store: ControlStore, tmp_path: Path
) -> None:
    first, second = made(tmp_path / "first"), made(tmp_path / "second")
    copied_store.write(lambda connection: catalog_tables.keep(connection, CONN, first, at=AT))
    copied_store.write(lambda connection: catalog_tables.keep(connection, CONN, second, at=AT))
    copied_store.write(lambda connection: catalog_tables.forget(connection, NAME, path=first.path))
    assert known_to_the_store(copied_store, CONN, NAME) == second
    for _ in range(2):
        copied_store.write(lambda connection: catalog_tables.forget(connection, NAME, path=second.path))
        assert known_to_the_store(copied_store, CONN, NAME) is None
    copied_store.write(lambda connection: catalog_tables.keep(connection, CONN, first, at=AT))
    assert known_to_the_store(copied_store, CONN, NAME) == first


def test_another_connection_may_have_another_catalog(copied_store: ControlStore, tmp_path: Path) -> None:
    here, there = made(tmp_path / "here"), made(tmp_path / "there")
    copied_store.write(lambda connection: catalog_tables.keep(connection, CONN, here, at=AT))
    copied_store.write(lambda connection: catalog_tables.keep(connection, "other", there, at=AT))
    assert known_to_the_store(copied_store, CONN, NAME) == here
    assert known_to_the_store(copied_store, "other", NAME) == there


def test_those_whose_job_does_not_check_the_name_ask_in_any_case(
    copied_store: ControlStore, catalog: Catalog, tmp_path: Path
) -> None:
    def runtime() -> Any:
        return catalog

    find = once_in_the_catalog(copied_store, open_named, runtime, connection=CONN, tables=open_table, anew=True)
    catalog.has[NAME] = made(tmp_path / "orders")
    assert find(NAME) == catalog.has[NAME]
    catalog.has[NAME] = made(tmp_path / "elsewhere")  # and the old one is there still
    assert find(NAME) == catalog.has[NAME]
