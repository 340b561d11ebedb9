"""With `keep_history` the task of any operator drops old history, and not only one that consumes a stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tidemark.control.schema import stores
from tidemark.operators._base import TidemarkOperator


class _Ends(TidemarkOperator):
    def execute(self, context: Any) -> str:
        return "done"


class _Fails(TidemarkOperator):
    def execute(self, context: Any) -> str:
        raise ValueError("of the task")


@pytest.fixture(autouse=True)
def connection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"control_store": f"sqlite:///{tmp_path}/store.db", "keep_history": "90d", "lake_root": str(tmp_path)}
    connection = {"conn_type": "tidemark", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_TIDEMARK_DEFAULT", json.dumps(connection))


def test_each_task_that_ends_well_drops_old_history() -> None:
    failing, ending = _Fails(task_id="failing"), _Ends(task_id="ending")
    store = ending.hook.open_store()
    store.migrate()

    def pruned_at() -> Any:
        return store.read(lambda c: c.execute(sa.select(stores.c.pruned_at)).scalar_one())

    with pytest.raises(ValueError, match="of the task"):
        failing.execute({})
    assert pruned_at() is None
    assert ending.execute({}) == "done"
    first = pruned_at()
    assert first is not None
    assert ending.execute({}) == "done"
    assert pruned_at() == first


def test_a_store_that_breaks_meanwhile_fails_no_task_whose_work_is_done() -> None:
    ending = _Ends(task_id="ending")
    store = ending.hook.open_store()
    store.migrate()
    store.write(lambda c: c.execute(sa.text("DROP TABLE tidemark_sample")))
    assert ending.execute({}) == "done"
