"""A constant in a DAG file is checked when that is parsed, or is a text that only the task can judge."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from airflow.sdk import BaseNotifier, BaseOperator

from tests.architecture.operator_pages import public
from tidemark.errors import TidemarkError

pytestmark = pytest.mark.airflow

STORE = "a name: only the control store knows which there are"
LAKE = "the name or place of a table: only the lake knows which there are"
TEXT = "any text will do"
FREE = {
    "conn_id": "a name: only Airflow knows which connections there are",
    "aws_conn_id": "a name: only Airflow knows which connections there are",
    "change_stream": STORE,
    "consumer_group": STORE,
    "replication": STORE,
    "object_name": "the name of a table of the database, mostly of a mapped task",
    "transaction": "what the task group is called",
    "run": STORE,
    "stream": STORE,
    "on": LAKE,
    "table": LAKE,
    "target": LAKE,
    "external_table": LAKE,
    "bundle": "what another task returns",
    "comment": TEXT,
    "notification_channel": "an address: only its service knows which there are",
    "why": TEXT,
    "schema": "columns in Spark's DDL: only Spark reads it",
    "pattern": "a path with wildcards: any text is one",
}
"""What needs no reader at parse; where an operator has one all the same, it stands in READ."""

READ = {
    ("CreateStreamOperator", "stream"),
    ("CreateKeyedStreamOperator", "stream"),
    ("CreateViewStreamOperator", "stream"),
    ("ConsumeStreamOperator", "stream"),
    ("ReplayWindowOperator", "stream"),
    ("WriteStreamOperator", "stream"),
    ("StreamSQLOperator", "stream"),
    ("StreamStaleSensor", "stream"),
    ("StaleStreamNotifier", "stream"),
    ("ConsumeStreamOperator", "target"),
    ("ReplayWindowOperator", "target"),
    ("WriteStreamOperator", "target"),
    ("CreateReplicationOperator", "target"),
    ("EventFilesOperator", "target"),
    ("CreateReplicationOperator", "replication"),
    ("CreateChangeStreamOperator", "change_stream"),
    ("CreateConsumerGroupOperator", "consumer_group"),
    ("ConsumerGroupStaleSensor", "consumer_group"),
    ("AdvanceStreamOperator", "why"),
    ("AlterSearchOptimizationOperator", "on"),
    ("RebaseStreamOperator", "why"),
}

GIVEN: dict[str, Any] = {
    "bundle": {},
    "copy_statement": "it.sql",
    "lag_seconds": 60,
    "position": "now",
    "query": "it.sql",
    "run": "r",
    "sql": "it.sql",
    "start": "now",
    "target_lag": "1 hour",
    "to": "now",
    "watch": "t.orders",
    "write_as": "append",
    "writes": (),
    "objects": "a.b",
    "tables": "a.b",
}
"""What is needed to make one; any other argument that is needed is a name."""
MORE = {
    "AlterChannelOperator": {"action": "open"},
    "AlterPipeOperator": {"action": "resume"},
    "AlterConsumerGroupOperator": {"action": "reset", "start": "now"},
    "ConsumeStreamOperator": {"target": "t.copy", "write_as": "append"},
    "EventFilesOperator": {"target": "/data/events"},
    "IngestRowsOperator": {"source": "lines"},
    "ReadPartitionOperator": {"target": "t.copy"},
    "ReplayWindowOperator": {"target": "t.copy"},
    "WriteStreamOperator": {"target": "t.copy"},
    "ReplicationLagSensor": {"lag_seconds": 60},
}
CALLED = {"only_plan": "dry_run"}  # where the field has another name than the argument
NEVER_RIGHT = float("nan")

TEMPLATED = sorted(
    (name, CALLED.get(field, field))
    for name, kind in public().items()
    if isinstance(kind, type) and issubclass(kind, BaseOperator | BaseNotifier)
    for field in kind.template_fields
    if (name, field) != ("WriteStreamOperator", "transaction")  # the group gives it
)


def make(name: str, **arguments: Any) -> object:
    kind = public()[name]
    own = [
        one
        for base in kind.__mro__
        if base.__module__.startswith("tidemark.") and "__init__" in vars(base)
        for one in inspect.signature(vars(base)["__init__"]).parameters.values()
        if one.kind is one.KEYWORD_ONLY and one.default is one.empty
    ]
    needed = {one.name: GIVEN.get(one.name, "n") for one in own}
    named = {"task_id": "it"} if issubclass(kind, BaseOperator) else {}
    return kind(**{**named, **needed, **MORE.get(name, {}), **arguments})


@pytest.mark.parametrize(("name", "argument"), TEMPLATED)
def test_each_templated_argument_is_read_or_free(name: str, argument: str) -> None:
    make(name)
    if argument in FREE and (name, argument) not in READ:
        make(name, **{argument: NEVER_RIGHT if argument == "bundle" else "any text"})
        return
    with pytest.raises(TidemarkError):
        make(name, **{argument: NEVER_RIGHT})


def test_what_is_said_to_be_free_or_read_is_an_argument() -> None:
    assert {argument for _, argument in TEMPLATED} >= FREE.keys()
    assert {pair for pair in READ if pair in TEMPLATED and pair[1] in FREE} == READ
