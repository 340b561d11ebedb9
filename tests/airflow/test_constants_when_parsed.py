"""What a DAG file says wrongly in so many words is an import error; what is not known yet is left to the task."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk import DAG, BaseOperator, Param, task

from tidemark.errors import ChangeStreamRefused, InvalidArgument, StatementRefused
from tidemark.operators.backfill import BackfillTableOperator
from tidemark.operators.cached_query import CachedQueryOperator
from tidemark.operators.capture import CaptureChangesOperator
from tidemark.operators.change_streams import (
    AlterChangeStreamOperator,
    CreateChangeStreamOperator,
    DropChangeStreamOperator,
)
from tidemark.operators.consume import ConsumeStreamOperator
from tidemark.operators.consumer_groups import AlterConsumerGroupOperator, CreateConsumerGroupOperator
from tidemark.operators.ingest import IngestRowsOperator
from tidemark.operators.keep_channels import KeepChannelsOperator
from tidemark.operators.keyed_streams import CreateKeyedStreamOperator
from tidemark.operators.partitions import PlanPartitionsOperator, ReadPartitionOperator
from tidemark.operators.pipes import CreatePipeOperator, RefreshPipeOperator, RunPipeOperator
from tidemark.operators.rebase import RebaseStreamOperator
from tidemark.operators.replay import ReplayWindowOperator
from tidemark.operators.replication_capture import CaptureEventsOperator
from tidemark.operators.replication_files import EventFilesOperator
from tidemark.operators.replication_lifecycle import PauseReplicationOperator, RecoverReplicationOperator
from tidemark.operators.replication_objects import BackfillObjectOperator, RequestBackfillOperator
from tidemark.operators.replication_retention import ExpireEventLogOperator
from tidemark.operators.replications import (
    CreateReplicationOperator,
    DropReplicationOperator,
    FinishReplicationOperator,
    PrepareReplicationOperator,
)
from tidemark.operators.search import AlterSearchOptimizationOperator, KeepSearchPathOperator
from tidemark.operators.streams import AdvanceStreamOperator, CreateStreamOperator, DropStreamOperator
from tidemark.operators.transaction import BeginTransactionOperator, WriteStreamOperator
from tidemark.operators.view_streams import CreateViewStreamOperator
from tidemark.task_groups.stream_transaction import stream_transaction

pytestmark = pytest.mark.airflow

APPEND = {"stream": "s", "target": "t.copy", "write_as": "append"}
MERGE = {"stream": "s", "target": "t.copy", "write_as": "merge", "keys": ["id"]}
SQL = {"stream": "s", "write_as": "sql", "sql": "INSERT INTO t.copy SELECT id FROM s"}
FUNCTION = {"stream": "s", "target": ["a.b", "a.c"], "write_as": "jobs.mine:write"}


def event_files(**arguments: Any) -> EventFilesOperator:
    return EventFilesOperator(**{"replication": "r", "target": "/data", **arguments})


BAD_WRITES: list[tuple[dict[str, Any], str]] = [
    ({**APPEND, "write_as": "apend"}, "write_as='apend'"),
    ({**APPEND, "write_as": ""}, "write_as=''"),
    ({**APPEND, "write_as": "no module:f"}, "write_as="),
    ({**APPEND, "write_as": lambda tx: None}, "write_as="),
    ({**APPEND, "target": None}, "target="),
    ({**APPEND, "target": ["a.b", "a.c"]}, "target="),
    ({**APPEND, "target": 5}, "target=5"),
    ({**APPEND, "keys": ["id"]}, "only a merge takes keys"),
    ({**APPEND, "sql": "SELECT 1"}, "takes no SQL"),
    ({**APPEND, "tables": ["a.b"]}, "only a function"),
    ({**APPEND, "schema_evolution": "grow"}, "schema_evolution='grow'"),
    ({**MERGE, "keys": ()}, "a merge needs key columns"),
    ({**MERGE, "keys": [""]}, "keys="),
    ({**MERGE, "target": "{{ params.t }}", "keys": None}, "a merge needs key columns"),
    ({**SQL, "sql": None}, "needs a statement"),
    ({**SQL, "sql": 5}, "needs a statement"),
    ({**SQL, "sql": "INSERT INTO t.copy SELEC id FROM s"}, "cannot be parsed"),
    ({**SQL, "sql": "DROP TABLE t.copy"}, "can be made to happen once"),
    ({**SQL, "sql": "INSERT INTO t.copy SELECT id FROM shop.orders"}, "it reads no stream"),
    ({**SQL, "target": ["a.b", "a.c"]}, "one table"),
    ({**SQL, "quarantine": "a.q"}, "only an append or a merge has one"),
    ({**SQL, "schema_evolution": "grow"}, "schema_evolution='grow'"),
    ({**FUNCTION, "target": None}, "name every table"),
    ({**FUNCTION, "keys": ["id"]}, "a function has its own"),
]


@pytest.mark.parametrize("operator", [ConsumeStreamOperator, WriteStreamOperator, ReplayWindowOperator])
@pytest.mark.parametrize(("arguments", "problem"), BAD_WRITES)
def test_a_write_that_cannot_be_is_refused(operator: type[BaseOperator], arguments: Any, problem: str) -> None:
    more = {"run": "r"} if operator is ReplayWindowOperator else {}
    with pytest.raises((InvalidArgument, StatementRefused), match=problem):
        operator(task_id="it", **more, **arguments)


@pytest.mark.parametrize("operator", [ConsumeStreamOperator, WriteStreamOperator, ReplayWindowOperator])
@pytest.mark.parametrize(
    "arguments",
    [
        APPEND,
        MERGE,
        SQL,
        FUNCTION,
        {**SQL, "sql": "deliver.sql"},
        {**SQL, "sql": "{{ params.sql }}"},
        {**SQL, "sql": "INSERT INTO t.copy SELECT id FROM S"},
        {**SQL, "sql": "INSERT INTO t.copy SELECT id FROM orders", "stream": "{{ params.s }}"},
        {**APPEND, "write_as": "{{ params.how }}", "target": None},
        {**APPEND, "target": "{{ params.t }}"},
        {**MERGE, "keys": "{{ params.keys }}"},
        {**MERGE, "keys": ["id", "{% if a %}b{% endif %}"]},
        {**MERGE, "quarantine": "{{ params.q }}", "schema_evolution": "{{ params.e }}"},
    ],
)
def test_what_fits_or_is_not_known_yet_is_taken_as_it_is(operator: type[BaseOperator], arguments: Any) -> None:
    more = {"run": "r"} if operator is ReplayWindowOperator else {}
    made = operator(task_id="it", **more, **arguments)

    assert {name: getattr(made, name) for name in arguments} == arguments


def test_results_of_other_tasks_and_parameters_are_left_to_the_task() -> None:
    with DAG("d", schedule=None, params={"mode": Param("standard")}) as dag:

        @task
        def choose() -> str:
            return "merge"

        chosen = choose()
        made = ConsumeStreamOperator(task_id="it", stream="s", target=chosen, write_as=chosen, keys=[chosen])
        ConsumeStreamOperator(task_id="p", stream="s", target="t.copy", write_as=dag.param("mode"))
        ConsumeStreamOperator.partial(task_id="m", stream="s", write_as="append").expand(target=["t.a", "t.b"])
    assert made.upstream_task_ids == {"choose"}


def test_a_writer_in_a_group_leaves_its_stream_to_the_group() -> None:
    with DAG("d", schedule=None), stream_transaction("tx", streams="s"):
        made = WriteStreamOperator(task_id="w", target="t.copy", write_as="append")
    assert made.stream == "s"


NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
CREATE = {"stream": "s", "on": "t.orders"}
PIPE = {"pipe": "p", "copy_statement": "copy.sql"}
INGEST = {"source": "lines", "table": "t.lines", "channel": "c"}
ADVANCE = {"stream": "s", "to": "now", "why": "loaded by hand"}


@pytest.mark.parametrize(
    ("make", "argument", "good", "bad"),
    [
        (lambda **a: CreateStreamOperator(**CREATE, **a), "mode", ["every_change", "{{ m }}"], ["net", "", None]),
        (
            lambda **a: CreateStreamOperator(**CREATE, **a),
            "at",
            [None, 0, "7", NOON, "2026-01-31T12:00Z", "{{ ds }}", "none"],
            ["noon", "2026-01-31T12:00", NOON.replace(tzinfo=None), 1.5],
        ),
        (lambda **a: CreateStreamOperator(**CREATE, **a), "or_replace", [True, "false", "{{ x }}"], ["perhaps", 2]),
        (lambda **a: CreateViewStreamOperator(**CREATE, **a), "mode", ["append_only"], ["insert_only", "all"]),
        (lambda **a: CreateViewStreamOperator(**CREATE, **a), "at", [NOON, None], [3, "3"]),
        (lambda **a: CreateKeyedStreamOperator(**CREATE, **a), "keys", ["id", ["a"], "{{ k }}"], ["", (), [1]]),
        (lambda **a: AdvanceStreamOperator(**{**ADVANCE, **a}), "to", ["now", 3, NOON, "{{ ds }}"], ["then", ""]),
        (lambda **a: AdvanceStreamOperator(**{**ADVANCE, **a}), "why", ["so", "{{ w }}"], ["", "  "]),
        (lambda **a: DropStreamOperator(stream="s", **a), "if_exists", [False, "{{ x }}"], ["perhaps"]),
        (lambda **a: ConsumeStreamOperator(**APPEND, **a), "dry_run", [True, "{{ x }}"], ["perhaps"]),
        (lambda **a: ConsumeStreamOperator(**APPEND, **a), "max_rows", [5, "5", None, "{{ n }}"], [0, -1, "many"]),
        (
            lambda **a: BeginTransactionOperator(transaction="t", streams="s", **a),
            "until",
            [NOON, None, "{{ data_interval_end }}"],
            [5, "noon"],
        ),
        (
            lambda **a: ReadPartitionOperator(bundle={}, change_stream="c", target="t.copy", **a),
            "write_as",
            ["append", "merge", "{{ w }}"],
            ["apend", "mine:write"],
        ),
        (
            lambda **a: CachedQueryOperator(**{"task_id": "q", "sql": "SELECT 1", **a}),
            "sql",
            ["SELECT count(*) FROM t", "{{ s }}", "q.sql"],
            ["DELETE FROM t", ""],
        ),
        (
            lambda **a: CachedQueryOperator(**{"task_id": "q", "sql": "SELECT 1", **a}),
            "settings",
            [None, {"spark.sql.ansi.enabled": True}],
            ["spark.sql.ansi.enabled=true", 5],
        ),
        (lambda **a: IngestRowsOperator(**{**INGEST, **a}), "source", ["lines", "m.n:f", "{{ s }}"], ["csv", "m:", ""]),
        (lambda **a: IngestRowsOperator(**{**INGEST, **a}), "channel", ["c", '"C"', "{{ c }}"], ["", "a\nb"]),
        (lambda **a: IngestRowsOperator(**{**INGEST, **a}), "on_error", ["abort", "Continue"], ["ignore", ""]),
        (lambda **a: IngestRowsOperator(**{**INGEST, **a}), "seconds", [None, 5, "5.5", "{{ s }}"], [-1, "long"]),
        (
            lambda **a: IngestRowsOperator(**{**INGEST, **a}),
            "channel_options",
            [{"evolve_schema": True}, {"quarantine": "{{ q }}"}, {"verify_tokens": "numeric"}, "{{ o }}"],
            [{"evolve": 1}, {"max_client_lag": "1 day"}, {"strict_tokens": True}, {"verify_tokens": "rising"}, 2],
        ),
        (
            lambda **a: KeepChannelsOperator(**{"tables": "a.b", **a}),
            "tables",
            ["a.b", "a.b, a.c", ["a.b"]],
            ["", [], [1]],
        ),
        (lambda **a: KeepChannelsOperator(tables="a.b", **a), "idle_days", [1, "7.5", "{{ d }}"], [-1, "long"]),
        (lambda **a: KeepChannelsOperator(tables="a.b", **a), "skip_when_unsafe", [True, "{{ s }}"], ["perhaps"]),
        (lambda **a: KeepSearchPathOperator(table="a.b", **a), "gib_per_commit", [1, "0.5", "{{ n }}"], [0, "much"]),
        (lambda **a: AlterSearchOptimizationOperator(table="a.b", **a), "on", [None, "EQUALITY(a)", "{{ o }}"], [5]),
        (lambda **a: CreatePipeOperator(**{**PIPE, **a}), "pipe", ["p", 'a."B"', "{{ p }}"], ["", "a.b.c.d", 5]),
        (lambda **a: CreatePipeOperator(**{**PIPE, **a}), "auto_ingest", [True, "no {{ p }}"], ["perhaps"]),
        (lambda **a: RunPipeOperator(pipe="p", **a), "modified_after", [NOON, None, "", "{{ t }}"], ["noon", 7, "7"]),
        (lambda **a: RunPipeOperator(pipe="p", **a), "max_files", [1, "5", None, "{{ n }}"], [0, "many"]),
        (lambda **a: RunPipeOperator(pipe="p", **a), "list_files", [None, "", True, "false", "all"], ["perhaps", 2]),
        (lambda **a: RefreshPipeOperator(pipe="p", **a), "prefix", ["2026/", None, "{{ p }}"], [5]),
    ],
)
def test_other_constants_are_checked_likewise(
    make: Callable[..., BaseOperator], argument: str, good: list[Any], bad: list[Any]
) -> None:
    for value in good:
        make(task_id="it", **{argument: value})
    for value in bad:
        with pytest.raises(InvalidArgument):
            make(task_id="it", **{argument: value})


WATCH = {"change_stream": "c", "watch": "t.orders", "keys": "id"}
GROUP = {"change_stream": "c", "consumer_group": "g"}
REPLICATE = {"replication": "r", "source_conn_id": "shop", "target": "mirror"}


@pytest.mark.parametrize(
    ("make", "argument", "good", "bad"),
    [
        (
            lambda **a: CreateChangeStreamOperator(**WATCH, **a),
            "options",
            [None, {}, {"retention_period": "7d"}, {"exclude_insert": "true"}, {"retention_period": "{{ r }}"}],
            [{"retention": "7d"}, {"retention_period": "a week"}, {"exclude_insert": "perhaps"}, "7d"],
        ),
        (lambda **a: CreateChangeStreamOperator(**WATCH, **a), "initial_partitions", [4, "4", "{{ n }}"], [0, "some"]),
        (lambda **a: AlterChangeStreamOperator(change_stream="c", **a), "suspend", [True, "{{ s }}"], ["perhaps"]),
        (lambda **a: AlterChangeStreamOperator(change_stream="c", **a), "options", [{}], [{"retention": None}]),
        (lambda **a: DropChangeStreamOperator(change_stream="c", **a), "if_exists", [False], ["perhaps"]),
        (lambda **a: CaptureChangesOperator(change_stream="c", **a), "max_rows", [5, "{{ n }}"], [0]),
        (lambda **a: CaptureChangesOperator(change_stream="c", **a), "split_rows", [5, "5"], [0, "many"]),
        (lambda **a: CaptureChangesOperator(change_stream="c", **a), "allowed_skew_seconds", [0, "1.5"], [-1, "long"]),
        (lambda **a: CreateConsumerGroupOperator(**GROUP, **a), "start", ["now", NOON, "{{ ds }}"], ["then", 3]),
        (lambda **a: AlterConsumerGroupOperator(**GROUP, **a), "action", ["pause", "{{ a }}"], ["halt", ""]),
        (
            lambda **a: BackfillTableOperator(**GROUP, table="t.orders", target="t.copy", **a),
            "overwrite",
            [True, "{{ o }}"],
            ["perhaps"],
        ),
        (lambda **a: RebaseStreamOperator(stream="s", why="so", **a), "force", [True, "{{ f }}"], ["perhaps"]),
        (
            lambda **a: CreateReplicationOperator(**{**REPLICATE, **a}),
            "include",
            [None, "shop", ["shop.*", 'shop."odd.name"'], "{{ i }}", ["shop.orders", "{{ i }}"]],
            ["a.b.c.d", ["shop..orders"], 5],
        ),
        (lambda **a: CreateReplicationOperator(**{**REPLICATE, **a}), "exclude", ["shop.*.password"], ['shop."a']),
        (lambda **a: CreateReplicationOperator(**{**REPLICATE, **a}), "mode", ["append_only", "{{ m }}"], ["mirror"]),
        (lambda **a: CreateReplicationOperator(**{**REPLICATE, **a}), "target", ["s3://b/m", "{{ t }}"], ["", None]),
        (
            lambda **a: CreateReplicationOperator(**REPLICATE, **a),
            "options",
            [None, {"max_events": "5"}, {"invalid_values": "null"}, {"max_events": "{{ n }}"}],
            [{"max_event": 5}, {"max_events": 0}, {"invalid_values": "drop"}, {"backfill": "perhaps"}],
        ),
        (lambda **a: PrepareReplicationOperator(replication="r", **a), "slot_patience_seconds", [0, "9"], [-1, "long"]),
        (lambda **a: FinishReplicationOperator(replication="r", **a), "fail_on_needs_backfill", [True], ["perhaps"]),
        (lambda **a: DropReplicationOperator(replication="r", **a), "without_source", [True, "{{ x }}"], ["perhaps"]),
        (lambda **a: CaptureEventsOperator(replication="r", **a), "skip_when_empty", [True], ["perhaps"]),
        (lambda **a: PauseReplicationOperator(replication="r", **a), "at_once", [True, "{{ x }}"], ["perhaps"]),
        (lambda **a: RecoverReplicationOperator(replication="r", position="now", **a), "keep", [["a.b"]], [5]),
        (
            lambda **a: RequestBackfillOperator(**{"replication": "r", "objects": "a.b", **a}),
            "action",
            ["stop"],
            ["end"],
        ),
        (lambda **a: ExpireEventLogOperator(replication="r", **a), "keep_days", [0, "7", "{{ d }}"], [-1, "long"]),
        (lambda **a: event_files(**a), "target", ["/d", "s3://b/c", "{{ t }}"], ["d", "", 5, "s3://u:p@b/c"]),
        (lambda **a: event_files(**a), "format", ["json", "AVRO", "{{ f }}"], ["csv", None]),
        (lambda **a: event_files(**a), "file_mb", [0.5, "250", "{{ m }}"], [0, 2000, "nan", "large", None]),
        (
            lambda **a: event_files(**a),
            "file_interval",
            [60, "0.5", timedelta(minutes=15), "{{ i }}"],
            [0, -1, 100_000, timedelta(days=2), "soon"],
        ),
        (lambda **a: CreateChangeStreamOperator(**{**WATCH, **a}), "change_stream", ["{{ c }}"], ["my stream", "", 5]),
        (
            lambda **a: CreateChangeStreamOperator(change_stream="c", **a),
            "watch",
            [None, "ALL", ["t.a", "t.b"], {"t.a": None, "t.b": []}, "{{ w }}", ["{{ w }}"]],
            [5, [""], {"t.a": 5}],
        ),
        (
            lambda **a: CreateChangeStreamOperator(change_stream="c", watch="t.a", **a),
            "keys",
            ["id", ["a", "b"], {"t.a": "id"}, "{{ k }}"],
            [5, {"t.b": "id"}, {"t.a": 5}],
        ),
        (
            lambda **a: AlterChangeStreamOperator(change_stream="c", suspend=True, **a),
            "watch",
            [None, "{{ w }}"],
            ["ALL"],
        ),
        (lambda **a: AlterChangeStreamOperator(change_stream="c", **a), "restart", ["t.a", ["t.a"], ()], [5, [""]]),
        (
            lambda **a: AlterConsumerGroupOperator(**GROUP, action="reset", **a),
            "start",
            ["now", NOON, "{{ ds }}"],
            [None, "", "then", 3],
        ),
        (lambda **a: AlterConsumerGroupOperator(**GROUP, action="pause", **a), "start", [None, "{{ s }}"], ["now"]),
        (lambda **a: PlanPartitionsOperator(**GROUP, **a), "max_rows", [5, "5", "{{ n }}"], [0, "many", None]),
        (lambda **a: PlanPartitionsOperator(**GROUP, **a), "max_chunks", [5, None, "{{ n }}"], [0, "many"]),
        (lambda **a: PlanPartitionsOperator(**GROUP, **a), "chunks_per_task", [5], [0, "many"]),
        (lambda **a: PlanPartitionsOperator(**GROUP, **a), "rows_per_task", ["5"], [0, "many"]),
        (lambda **a: PlanPartitionsOperator(**GROUP, **a), "token", [None, "", "{{ t }}"], ["the first"]),
        (
            lambda **a: BackfillObjectOperator(replication="r", object_name="a.b", **a),
            "partitions",
            [1, "4", "{{ n }}"],
            ["some", 0, None],
        ),
        (
            lambda **a: RecoverReplicationOperator(replication="r", **a),
            "position",
            ["now", "16/B374D848", "{{ p }}"],
            ["", "then", 5],
        ),
        (lambda **a: RebaseStreamOperator(stream="s", **a), "why", ["so", "{{ w }}"], ["", " ", 5]),
        (lambda **a: CreateReplicationOperator(**{**REPLICATE, **a}), "source_conn_id", ["{{ c }}"], ["", " ", None]),
        (
            lambda **a: CreateReplicationOperator(**REPLICATE, **a),
            "options",
            [
                {"mask_columns": ["a.b.c"], "numeric_as": "decimal(38,9)"},
                {"mask_columns": ["{{ m }}"]},
                {"target_table": "raw_{table}", "append_only_tables": ["a.*"], "merge_tables": "b", "fetch_rows": 100},
            ],
            [
                {"mask_columns": ["a.b"]},
                {"hash_columns": ["a"]},
                {"hash_columns": ["a"], "max_events": "{{ n }}"},
                {"backfill_exclude": ["a.b.c"]},
                {"numeric_as": "decimal(39,1)"},
                {"gives_way_after": 90_000},
                {"target_table": "raw"},
                {"merge_tables": ["a.b.c"]},
                {"append_only_tables": ["a..b"]},
                {"fetch_rows": 0},
            ],
        ),
    ],
)
def test_constants_of_change_streams_and_replications_are_checked_likewise(
    make: Callable[..., BaseOperator], argument: str, good: list[Any], bad: list[Any]
) -> None:
    for value in good:
        make(task_id="it", **{argument: value})
    for value in bad:
        with pytest.raises((InvalidArgument, ChangeStreamRefused)):
            make(task_id="it", **{argument: value})


def test_a_stream_that_no_statement_reads_is_refused() -> None:
    several: dict[str, Any] = {"stream": ["s", "Q"], "write_as": "sql"}
    with pytest.raises(InvalidArgument, match=r"stream='Q': nothing reads it"):
        ConsumeStreamOperator(task_id="it", **several, sql="INSERT INTO t SELECT id FROM s")
    ConsumeStreamOperator(task_id="it", **several, sql="INSERT INTO t SELECT s.id FROM s JOIN q ON s.id = q.id")
    ConsumeStreamOperator(task_id="it", **several, sql="{{ params.sql }}")
    targets = [{"write_as": "sql", "sql": f"INSERT INTO t_{name} SELECT id FROM {name}"} for name in ("s", "q")]
    ConsumeStreamOperator(task_id="it", stream=["s", "q"], targets=targets)
