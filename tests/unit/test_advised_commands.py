"""Advised commands name the connection of the page, also as the parameter of a DAG that is triggered."""

from __future__ import annotations

import json
import shlex

import pytest

from tests.airflow.conftest import HOME  # sets Airflow's home before Airflow is imported
from tidemark.control.object_kinds import kind_named
from tidemark.hooks.advised_commands import commands_for

assert HOME


@pytest.mark.parametrize("conn_id", ["tidemark_finance", 'it\'s "odd"'])
def test_commands_and_the_dag_name_a_connection_that_is_not_the_default(conn_id: str) -> None:
    trigger, show = commands_for(kind_named("stream").advice_for("stale", "a name; rm", None), conn_id)
    assert json.loads(shlex.split(trigger)[-1]) == {"stream": "a name; rm", "conn_id": conn_id}
    assert shlex.split(show)[-2:] == ["--conn-id", conn_id]


def test_the_default_connection_is_not_named() -> None:
    advice = kind_named("stream").advice_for("stale", "orders", None)
    assert commands_for(advice, "tidemark_default") == advice.commands
