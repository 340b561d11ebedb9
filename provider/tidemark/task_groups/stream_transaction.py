"""A transaction as a task group: begin is its setup, commit its last task, rollback its teardown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from airflow.sdk import BaseOperator, TaskGroup
from airflow.sdk.definitions.mappedoperator import MappedOperator
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.definitions.taskgroup import MappedTaskGroup

from tidemark.errors import InvalidArgument, NotYetSupported
from tidemark.hooks.tidemark import DEFAULT_CONN_ID
from tidemark.operators._constants import check_write, is_constant
from tidemark.operators._plans import WriteRequest, names_of, quarantine_of, require_all_read
from tidemark.operators.transaction import (
    BeginTransactionOperator,
    CommitTransactionOperator,
    RollbackTransactionOperator,
    WriteStreamOperator,
)

__all__ = ["stream_transaction"]


@contextmanager
def stream_transaction(
    group_id: str,
    *,
    streams: str | Sequence[str],
    max_commits: int | str | None = None,
    max_rows: int | str | None = None,
    max_bytes: int | str | None = None,
    until: datetime | str | None = None,
    skip_when_empty: bool | str = False,
    outlets: Sequence[Any] | None = None,
    conn_id: str = DEFAULT_CONN_ID,
    **group: Any,
) -> Iterator[TaskGroup]:
    """A task group whose writers deliver the streams' windows together, exactly once.

    The body holds `WriteStreamOperator`s and any other tasks, in any order. When it closes, the plan of all writers is
    handed to `begin`, so that it is written ahead. `commit` runs when the whole body has succeeded, moves the offsets
    and owns the outlets. `rollback` runs in any case and is a no-op after a commit. Downstream of the group means after
    the commit.

    Raises InvalidArgument for a body without a writer and a group without a stream. The same for a writer of a stream
    that is not in the group, or that cannot take all of them. The same for `params` of a writer that its templates may
    use. Raises NotYetSupported for mapped writers, since their number is not known at parse time.

    :param group_id: id of the task group; with the run it is the transaction's key.
    :param streams: the streams that are consumed together, one name or several. (templated)
    :param max_commits: take at most this many versions of each source. (templated)
    :param max_rows: end the window before the commit that would exceed this many changes, as the log estimates them.
        The window has one commit at least. (templated)
    :param max_bytes: end the window before the commit whose files would exceed this many bytes. A long backlog then
        comes in slices, of one commit at least. (templated)
    :param until: take nothing that was committed after this time, which has a zone. (templated)
    :param skip_when_empty: end as skipped, without an asset event, when nothing is new. (templated)
    :param outlets: assets that get the event of the commit; None: those of the streams.
    :param conn_id: the Airflow connection of type `tidemark`; the default one need not exist. (templated)
    """
    with TaskGroup(group_id, **group) as transaction:
        begin = BeginTransactionOperator(
            task_id="begin",
            transaction=str(transaction.group_id),
            streams=streams,
            max_commits=max_commits,
            max_rows=max_rows,
            max_bytes=max_bytes,
            until=until,
            conn_id=conn_id,
        )
        yield transaction
        body = [task for task in transaction if task is not begin]
        _refuse_mapped(transaction, body)
        writers = [task for task in body if isinstance(task, WriteStreamOperator)]
        begin.targets_when_parsed = [_targets_of(writer) for writer in writers]
        begin.writes = _plan(begin, writers)
        commit = CommitTransactionOperator(
            task_id="commit",
            transaction=str(transaction.group_id),
            streams=streams,
            skip_when_empty=skip_when_empty,
            conn_id=conn_id,
            **({} if outlets is None else {"outlets": list(outlets)}),
        )
        rollback = RollbackTransactionOperator(
            task_id="rollback", transaction=str(transaction.group_id), conn_id=conn_id
        )
    _wire(begin, body, commit, rollback)
    commit >> rollback.as_teardown(setups=begin, on_failure_fail_dagrun=False)


def _plan(begin: BeginTransactionOperator, writers: Sequence[WriteStreamOperator]) -> list[dict[str, Any]]:
    """The writers' arguments in the order of the DAG file; each writer gets its number."""
    streams = begin.streams
    if is_constant(streams) and not names_of("streams", streams):
        raise InvalidArgument(argument="streams", value=streams, problem="name one stream at least")
    if not writers:
        raise InvalidArgument(argument="body", value=begin.transaction, problem="it has no WriteStreamOperator")
    requests: list[dict[str, Any]] = []
    number = 0
    for writer, targets in zip(writers, begin.targets_when_parsed, strict=True):
        if writer.stream is None:
            writer.stream = streams
        _check_writer(writer, streams)
        _refuse_own_params(writer, begin)
        writer.transaction = begin.transaction
        writer.conn_id = begin.conn_id
        writer.first_statement = number
        requests.append(writer.request)
        number += targets + (writer.quarantine is not None)
    if is_constant([streams, requests], WriteStreamOperator.template_ext):
        require_all_read([WriteRequest.parse(given) for given in requests], names_of("streams", streams))
    return requests


def _targets_of(writer: WriteStreamOperator) -> int:
    """The number of tables of the writer; `begin` refuses another one, when templates are rendered."""
    if is_constant(writer.target, writer.template_ext):
        return len(names_of("target", writer.target)) or 1
    return len(writer.target) if isinstance(writer.target, list | tuple) else 1


def _refuse_own_params(writer: WriteStreamOperator, begin: BeginTransactionOperator) -> None:
    """Templates of all writers are rendered by `begin`, too, which does not have them. Raises InvalidArgument."""
    known = {**ParamsDict(begin.dag.params).dump(), **ParamsDict(begin.params).dump()}
    given = ParamsDict(writer.params).dump()
    own = [name for name, value in given.items() if name not in known or known[name] != value]
    if own and _may_use_params(list(writer.request.values())):
        problem = "begin renders the templates of all writers, and has the params of the DAG alone; move them there"
        raise InvalidArgument(argument="params", value=own, problem=problem)


def _may_use_params(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_may_use_params, value))
    of_file = isinstance(value, str) and value.endswith(tuple(WriteStreamOperator.template_ext))
    return of_file or (isinstance(value, str) and not is_constant(value) and "params" in value)


def _check_writer(writer: WriteStreamOperator, streams: str | Sequence[str]) -> None:
    """Check the constants among the arguments that the group settles. Raises InvalidArgument."""
    if is_constant([writer.stream, streams]):
        known = {name.casefold() for name in names_of("streams", streams)}
        others = [name for name in names_of("stream", writer.stream) if name.casefold() not in known]
        if others:
            problem = f"the group takes {', '.join(names_of('streams', streams))} alone"
            raise InvalidArgument(argument="stream", value=others, problem=problem)
    quarantine = writer.quarantine
    if quarantine is not None and is_constant(quarantine) and quarantine_of(quarantine) is None:
        problem = "in a group it must be a name: the number of statements is settled when the DAG is parsed"
        raise InvalidArgument(argument="quarantine", value=quarantine, problem=problem)
    check_write(writer)


def _refuse_mapped(transaction: TaskGroup, body: Sequence[Any]) -> None:
    for task in body:
        writes = issubclass(getattr(task, "operator_class", type(task)), WriteStreamOperator)
        if writes and (isinstance(task, MappedOperator) or _in_mapped_group(task, transaction)):
            raise NotYetSupported(
                feature=f"A mapped WriteStreamOperator ({task.task_id}) in a stream_transaction",
                instead="The plan is written ahead, so every writer must be known when the DAG is parsed. Write them "
                "out, or use one writer with a function.",
            )


def _in_mapped_group(task: BaseOperator, transaction: TaskGroup) -> bool:
    group = task.task_group
    while group is not None and group.group_id != transaction.group_id:
        if isinstance(group, MappedTaskGroup):
            return True
        group = group.parent_group
    return False


def _wire(begin: BaseOperator, body: Sequence[BaseOperator], commit: BaseOperator, rollback: BaseOperator) -> None:
    """`begin` precedes every root of the body, and every leaf precedes `commit`. `rollback` waits for the writers, too,
    since `commit` fails as soon as one of them does.
    """
    inside = {task.task_id for task in body}
    for task in body:
        if task.upstream_task_ids.isdisjoint(inside):
            begin >> task
        if task.downstream_task_ids.isdisjoint(inside) and not task.is_teardown:
            task >> commit
        if isinstance(task, WriteStreamOperator):
            task >> rollback
