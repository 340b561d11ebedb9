"""One bundle of chunks: taken up, read by one job, and what became of each chunk kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from tidemark.change_streams.model.change_streams import Chunk
from tidemark.change_streams.model.jobs import READ_PARTITIONS
from tidemark.change_streams.model.sinks import ChunkAnswer, ChunkWrite, ReadRequest, Sink
from tidemark.change_streams.store import chunk_sinks
from tidemark.change_streams.worker.definitions import get_change_stream
from tidemark.change_streams.worker.sinks import keep_sink
from tidemark.change_streams.worker.waves import begin_chunks, chunk_failed, chunk_written
from tidemark.control.store import ControlStore
from tidemark.delivery.planning.stream_numbers import RETENTION
from tidemark.errors import JobError, from_record
from tidemark.failpoints import failpoint
from tidemark.model.jobs import ErrorRecord
from tidemark.model.statements import TransactionKey
from tidemark.streams.worker.catalog import forget_moved
from tidemark.streams.worker.runtime import Runtime
from tidemark.streams.worker.targets import require_memory

__all__ = ["BundleResult", "read_chunks"]


@dataclass(frozen=True)
class BundleResult:
    """The result of a task. `rows`: that its job brought to the sink; `found`: chunks that the sink already had."""

    chunks: int
    rows: int
    found: int
    failed: tuple[tuple[str, str], ...]  # token, why


def read_chunks(
    runtime: Runtime, chunks: Sequence[Chunk], sink: Sink, *, run: str, key: TransactionKey
) -> BundleResult:
    """Bring the chunks to the sink, each once. Chunks that are written already are not read, and start no job.

    A chunk that fails is kept as failed for this `run` and does not stop the others. A second run continues with those
    that are missing. Raises ChunkChanged for chunks that are not as they were written ahead. Raises an error of the job
    as a whole, after all of its chunks were kept as failed. Raises, before the job starts, TargetForgetsTransactions,
    and InvalidArgument for a target that the change stream watches.
    """
    store = runtime.store
    open_ones = begin_chunks(store, chunks, run, task=str(key))
    failpoint("read.begun")
    answers = _answers(runtime, open_ones, sink, run, key) if open_ones else ()
    failpoint("read.answered")
    by_id = {(chunk.token, chunk.number): chunk for chunk in open_ones}
    for answer in answers:
        _keep(store, by_id[answer.token, answer.number], answer, run, key)
    failpoint("read.stored")
    return BundleResult(
        chunks=len(chunks),
        rows=sum(answer.rows or 0 for answer in answers),
        found=len(chunks) - len(open_ones) + sum(answer.found for answer in answers),
        failed=tuple((answer.token, answer.error.message) for answer in answers if answer.error is not None),
    )


def _answers(
    runtime: Runtime, chunks: Sequence[Chunk], sink: Sink, run: str, key: TransactionKey
) -> tuple[ChunkAnswer, ...]:
    store = runtime.store
    request = ReadRequest(get_change_stream(store, chunks[0].stream).log_path, sink, _pinned(runtime, chunks, sink))
    try:
        result = runtime.run(runtime.spec(READ_PARTITIONS, request, key=key, deadline=runtime.deadline()))
    except JobError as error:
        _all_failed(store, chunks, run, key, error.to_record())
        raise
    if result.error is not None:
        _all_failed(store, chunks, run, key, result.error)
        problem = from_record(result.error)
        forget_moved(store, problem)
        raise problem
    return READ_PARTITIONS.reported(result).chunks


def _pinned(runtime: Runtime, chunks: Sequence[Chunk], sink: Sink) -> tuple[ChunkWrite, ...]:
    target = sink.target
    if target is None:
        return tuple(ChunkWrite(chunk) for chunk in chunks)
    store, log = runtime.store, runtime.tables(target.path)
    head = log.head()
    metadata = log.state(head).metadata
    require_memory(target.name, metadata, runtime.limits)
    since = max(0, log.earliest() - 1) if RETENTION in metadata.configuration else None

    def pin(connection: sa.Connection) -> tuple[ChunkWrite, ...]:
        for stream_uid, group_uid in sorted({(chunk.stream_uid, chunk.group_uid) for chunk in chunks}):
            keep_sink(connection, store, stream_uid, group_uid, target)
        return tuple(ChunkWrite(chunk, chunk_sinks.pin(connection, chunk, target, head), since) for chunk in chunks)

    return store.write(pin)


def _keep(store: ControlStore, chunk: Chunk, answer: ChunkAnswer, run: str, key: TransactionKey) -> None:
    if answer.error is None:
        rows = chunk.expected if answer.rows is None else answer.rows  # a function need not count
        chunk_written(store, chunk, rows, answer.facts)
    else:
        chunk_failed(store, chunk, run, answer.error.message, task=str(key))


def _all_failed(
    store: ControlStore, chunks: Sequence[Chunk], run: str, key: TransactionKey, error: ErrorRecord
) -> None:
    for chunk in chunks:
        chunk_failed(store, chunk, run, error.message, task=str(key))
