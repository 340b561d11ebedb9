"""Constants of statements, sensors, notifiers and task groups are checked when the DAG file is parsed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from airflow.sdk import DAG

from tidemark.errors import InvalidArgument, SqlCompilationError, StatementRefused, TidemarkError
from tidemark.notifications.idle_channel import ChannelIdleNotifier
from tidemark.notifications.stale_stream import StaleStreamNotifier
from tidemark.operators.alter_channel import AlterChannelOperator
from tidemark.operators.alter_pipe import AlterPipeOperator
from tidemark.operators.copy_into import CopyIntoOperator
from tidemark.operators.external_tables import RefreshExternalTableOperator
from tidemark.operators.pipes import CreatePipeOperator
from tidemark.operators.stream_sql import StreamSQLOperator
from tidemark.operators.transaction import BeginTransactionOperator, WriteStreamOperator
from tidemark.operators.vacuum import VacuumTableOperator
from tidemark.sensors.channels import ChannelLagSensor
from tidemark.sensors.consumer_groups import ConsumerGroupStaleSensor
from tidemark.sensors.replication import BackfillDoneSensor, ReplicationLagSensor
from tidemark.sensors.stale import StreamStaleSensor
from tidemark.sensors.streams import StreamHasDataSensor
from tidemark.task_groups.change_stream_partitions import change_stream_partitions
from tidemark.task_groups.stream_transaction import stream_transaction

pytestmark = pytest.mark.airflow
ALTER = {"table": "a.b", "channel": "c", "action": "set_token"}

APPEND = {"stream": "s", "target": "t.copy", "write_as": "append"}
GROUP = {"change_stream": "c", "consumer_group": "g"}
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("make", "argument", "good", "bad"),
    [
        (
            StreamSQLOperator,
            "sql",
            [
                "SELECT SYSTEM$STREAM_HAS_DATA('s')",
                "DROP STREAM IF EXISTS s",
                "CREATE CHANGE STREAM c FOR ALL",
                "CREATE TABLE a.kept AS SELECT id FROM s",
                "it.sql",
            ],
            [
                "",
                None,
                "CREATE STRAEM s ON TABLE t",
                "CREATE STREAM s ON TABEL t",
                "SHOW TABLES",
                "CREATE CHANGE STREAM",
                "CREATE OR REPLACE TABLE a.kept AS SELECT id FROM s",
                "CREATE TABLE a.kept USING parquet AS SELECT id FROM s",
            ],
        ),
        (
            CopyIntoOperator,
            "sql",
            ["COPY INTO a.b FROM @s", "COPY INTO a.b FROM '{{ params.place }}/'", "copy.sql"],
            [
                "",
                5,
                "COPY INTO a.b FORM @s",
                "COPY INTO a.b FROM @s ON_EROR = CONTINUE",
                "COPY INTO a.b FROM @s VALIDATION_MODE = RETURN_ERRORS",
                "CREATE STAGE s URL = '/in'",
                "SELECT 1",
            ],
        ),
        (
            lambda **a: CreatePipeOperator(pipe="p", **a),
            "copy_statement",
            ["COPY INTO a.b FROM @s", "copy.sql"],
            ["", "COPY INTO a.b FROM @s FORCE = TRUE", "COPY INTO a.b FROM @s ON_ERROR = ABORT_STATEMENT", "SELECT 1"],
        ),
        (lambda **a: StreamSQLOperator(sql="it.sql", **a), "max_rows", [5, "{{ n }}"], [0, "many"]),
        (lambda **a: StreamSQLOperator(sql="it.sql", **a), "until", [NOON, None], ["noon", 5]),
        (lambda **a: StreamSQLOperator(sql="it.sql", **a), "skip_when_empty", [True, "{{ s }}"], ["perhaps"]),
        (lambda **a: VacuumTableOperator(table="t.a", **a), "max_extension_days", [None, 7, "7"], [-1, "long", 10**6]),
        (lambda **a: VacuumTableOperator(table="t.a", **a), "stretch", [False, "{{ s }}"], ["perhaps"]),
        (lambda **a: VacuumTableOperator(table="t.a", **a), "dry_run", [True, "{{ d }}"], ["perhaps"]),
        (
            lambda **a: RefreshExternalTableOperator(external_table="f", **a),
            "file_format",
            [None, "None", "parquet", " CSV ", "{{ f }}"],
            ["parket", 5],
        ),
        (
            lambda **a: RefreshExternalTableOperator(external_table="f", **a),
            "location",
            [None, "None", "{{ l }}"],
            ["/files", "s3://user:secret@bucket/files"],
        ),
        (
            lambda **a: RefreshExternalTableOperator(external_table="f", **a),
            "options",
            [None, {"header": True}, {"sep": "{{ s }}"}],
            ["header", 5],
        ),
        (
            lambda **a: BeginTransactionOperator(transaction="t", streams="s", **a),
            "writes",
            [(), [APPEND], [{**APPEND, "target": "{{ t }}"}], "{{ w }}"],
            [[{**APPEND, "keys": "id"}], [{}], ["append"], 5],
        ),
        (lambda **a: StreamHasDataSensor(stream="s", **a), "exact", [True, "{{ e }}"], ["perhaps"]),
        (StreamStaleSensor, "hours_left", [0, "2.5", "{{ h }}"], [-1, "long", None]),
        (StreamStaleSensor, "failures", [None, 3, "3"], [0, "many"]),
        (StreamStaleSensor, "unmoved_hours", [None, "1"], ["long"]),
        (StreamStaleSensor, "stream", [None, "s", ["s", "t"]], [5, [""]]),
        (lambda task_id, **a: StaleStreamNotifier(**a), "hours_left", [0, "{{ h }}"], ["long"]),
        (lambda task_id, **a: StaleStreamNotifier(**a), "failures", [None, 3], ["many"]),
        (ConsumerGroupStaleSensor, "hours_left", [None, 2, "{{ h }}"], [-1, "long"]),
        (ConsumerGroupStaleSensor, "consumer_group", [None, "None", "{{ g }}"], ["g"]),
        (lambda **a: BackfillDoneSensor(replication="r", **a), "fail_on", [None, "failed, stopped"], ["ended", 5]),
        (lambda **a: BackfillDoneSensor(replication="r", **a), "objects", [None, "a.b"], [5]),
        (lambda **a: ChannelLagSensor(table="a.b", **a), "lag_seconds", [5, "5", "{{ l }}"], [None, "long", -1]),
        (lambda **a: ChannelLagSensor(table="a.b", lag_seconds=5, **a), "channels", [None, "a, b", ["a"]], [5, "a\nb"]),
        (lambda **a: ChannelLagSensor(table="a.b", lag_seconds=5, **a), "below", [True, "{{ b }}"], ["perhaps"]),
        (
            lambda **a: AlterChannelOperator(**{**ALTER, **a}),
            "action",
            ["open", "Set_Token", "{{ a }}"],
            ["close", None],
        ),
        (lambda **a: AlterChannelOperator(**{**ALTER, **a}), "channel", ["c", '"C"', "{{ c }}"], ["", 5, "a\nb"]),
        (lambda **a: AlterChannelOperator(**{**ALTER, **a}), "token", [None, "", "None", "7", "{{ t }}"], [7]),
        (
            lambda **a: AlterChannelOperator(**{**ALTER, "action": "drop", **a}),
            "token",
            [None, "None", "{{ t }}"],
            ["7"],
        ),
        (
            lambda **a: AlterPipeOperator(**{"pipe": "p", "action": "resume", **a}),
            "action",
            ["pause", "Drop", "{{ a }}"],
            ["stop", None],
        ),
        (lambda **a: AlterPipeOperator(pipe="p", action="resume", **a), "force", [True, "{{ f }}"], ["perhaps"]),
        (lambda **a: AlterPipeOperator(pipe="p", action="pause", **a), "force", [False, "{{ f }}"], [True]),
        (lambda task_id, **a: ChannelIdleNotifier(**a), "tables", [None, "a.b, a.c", ["a.b"]], [5, [1]]),
        (lambda task_id, **a: ChannelIdleNotifier(**a), "idle_hours", [0, "2.5", "{{ h }}"], [-1, "long"]),
        (lambda **a: ReplicationLagSensor(replication="r", **a), "lag_seconds", [5, "5", "{{ l }}"], [None, "long"]),
        (lambda **a: ReplicationLagSensor(replication="r", **a), "lag_bytes", [5, "{{ l }}"], [None, 0, "much"]),
        (
            lambda **a: ReplicationLagSensor(replication="r", lag_bytes=5, **a),
            "below",
            [True, "{{ b }}"],
            ["perhaps"],
        ),
    ],
)
def test_constants_of_all_others_are_checked_likewise(
    make: Callable[..., Any], argument: str, good: list[Any], bad: list[Any]
) -> None:
    for value in good:
        make(task_id="it", **{argument: value})
    for value in bad:
        with pytest.raises((InvalidArgument, StatementRefused, SqlCompilationError)):
            make(task_id="it", **{argument: value})


def parsed_group(streams: Any, **writer: Any) -> None:
    with DAG("d", schedule=None), stream_transaction("tx", streams=streams):
        WriteStreamOperator(task_id="w", **{"target": "t.copy", "write_as": "append", **writer})


READS_U = {"write_as": "sql", "target": None, "sql": "INSERT INTO t.copy SELECT id FROM u"}


@pytest.mark.parametrize(
    ("streams", "writer", "problem"),
    [
        ([], {}, "name one stream at least"),
        ("s", {"stream": "t"}, "the group takes s alone"),
        (["s", "u"], {**READS_U, "stream": ["u", "t"]}, r"stream=\['t'\]"),
        (["s", "u"], {}, "exactly one name is needed"),
        ("s", {"quarantine": ""}, "in a group it must be a name"),
        ("s", READS_U, "it reads no stream"),
    ],
)
def test_a_writer_that_the_group_cannot_have_is_refused_as_it_closes(streams: Any, writer: Any, problem: str) -> None:
    with pytest.raises(TidemarkError, match=problem):
        parsed_group(streams, **writer)


@pytest.mark.parametrize(
    ("streams", "writer"),
    [
        (["s", "u"], {"stream": ["U", "S"], "write_as": "m:f"}),
        ("{{ params.s }}", {"stream": "t"}),
        ("s", {"stream": "{{ params.s }}"}),
        ("s", {"quarantine": "{{ params.q }}"}),
        ("u", READS_U),
    ],
)
def test_a_writer_that_fits_or_is_not_known_yet_is_left_to_the_task(streams: Any, writer: Any) -> None:
    parsed_group(streams, **writer)


@pytest.mark.parametrize(
    "given",
    [
        {"plan": {"max_rows": "many"}},
        {"keys": "id"},
        {"read": {"write_as": "apend"}},
        {"capture": {"split_rows": None}},
    ],
)
def test_arguments_for_the_tasks_of_partitions_are_checked(given: dict[str, Any]) -> None:
    with DAG("d", schedule=None), pytest.raises(InvalidArgument):
        change_stream_partitions("p", **GROUP, **{"write_as": "append", "target": "t.copy", **given})
