"""Writing tasks that name views: dynamic tables are read as their rows, and materialized views are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guarantees.view_world import ViewWorld
from tidemark.errors import InvalidArgument, StatementRefused
from tidemark.hooks.tidemark import TidemarkHook
from tidemark.materialized.model.definitions import KeptKind
from tidemark.operators._plans import WriteRequest
from tidemark.operators._reads_of_views import over_views

pytestmark = pytest.mark.airflow


def test_a_task_reads_dynamic_tables_and_no_materialized_view(
    hook: TidemarkHook, use: Callable[[str], None], sqlite_store: str, tmp_path: Path
) -> None:
    use(sqlite_store)
    world = ViewWorld(tmp_path, sqlite_store)
    world.view("t", "source")
    world.view("m", "source", kind=KeptKind.MATERIALIZED_VIEW)
    world.source.append()
    world.refresh("t")

    def planned(sql: str) -> str:
        return str(over_views(hook, WriteRequest(("s",), ("o",), "sql", sql=sql)).sql)

    plain = "INSERT INTO o SELECT id FROM s"
    assert planned(plain) == plain
    assert f"FROM delta.`{world.kept['t'].uri}`" in planned("INSERT INTO o SELECT s.id FROM s JOIN t ON s.id = t.id")
    with pytest.raises(StatementRefused, match="cannot read the materialized view m"):
        planned("INSERT INTO o SELECT s.id FROM s JOIN m ON s.id = m.id")
    with pytest.raises(InvalidArgument, match="cannot read the materialized view m"):
        over_views(hook, WriteRequest(("s",), ("o",), "package.module:function", tables=("t", "m")))
    world.store.close()
