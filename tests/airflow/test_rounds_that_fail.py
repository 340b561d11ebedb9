"""Rounds that end with an error between two of them keep the asset events of the earlier ones."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidemark.control.store import ControlStore
from tidemark.errors import StoreError
from tidemark.operators._applied import Applied
from tidemark.operators._replication import Transfer
from tidemark.operators.replication_continuous import ReplicateContinuouslyOperator, _Rounds

pytestmark = pytest.mark.airflow


def test_an_error_before_a_later_round_ends_the_task_well_and_one_before_the_first_fails_it(tmp_path: Path) -> None:
    unused: Any = None
    task = ReplicateContinuouslyOperator(task_id="rounds", replication="shop")
    context: Any = {"ti": SimpleNamespace(dag_id="d", run_id="r", task_id="rounds", map_index=-1)}
    gone = ControlStore(f"sqlite:///{tmp_path}/gone/control.db")
    done = Applied()
    rounds = _Rounds(task, context, gone, unused, unused, unused, unused, datetime.now(UTC), unused, done)
    with pytest.raises(StoreError):
        task._ran(rounds)
    done.moved["shop.orders"] = Transfer.from_log("the log", "the target", 1)
    assert not task._ran(rounds)
