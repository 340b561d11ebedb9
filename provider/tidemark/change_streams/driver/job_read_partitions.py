"""The READ_PARTITIONS job: the chunks of a bundle, one after the other, each to its sink once."""

from __future__ import annotations

from tidemark.change_streams.driver.apply import named_apply_error
from tidemark.change_streams.driver.sinks import ChunkSink
from tidemark.change_streams.model.jobs import ChunkAnswers
from tidemark.change_streams.model.sinks import ChunkAnswer, ChunkWrite, ReadRequest, SinkKind
from tidemark.errors import JobCancelled, JobDeadlineExceeded, TidemarkError
from tidemark.jobs.context import JobContext
from tidemark.jobs.failures import named_failure
from tidemark.streams.driver.catalog_tables import require_in_catalog
from tidemark.streams.driver.function import load_function

__all__ = ["read_partitions"]


def read_partitions(job: JobContext, request: ReadRequest) -> ChunkAnswers:
    """A chunk that fails does not stop the others, but for the later ones of its token, which are left out. A second
    run writes what is missing. Raises StatementRefused if there is no such function, before a chunk is read.
    """
    if request.sink.kind is SinkKind.FUNCTION:
        load_function(request.sink.function or "")
    target = request.sink.target
    if target is not None:
        require_in_catalog(job.session, {target.name: target.path})
    sink = ChunkSink(job.session, job.spec.store_id, request.log_path, request.sink, job.stop_if_due, job.options)
    answers: list[ChunkAnswer] = []
    failed: set[str] = set()
    for write in sorted(request.writes, key=lambda one: one.chunk.number):
        if write.chunk.token in failed:
            continue
        answer = _tried(sink, write)
        if answer.error is not None:
            failed.add(answer.token)
        answers.append(answer)
        job.progress.say(_line(answer, len(answers), len(request.writes)))
    return ChunkAnswers(tuple(answers))


def _tried(sink: ChunkSink, write: ChunkWrite) -> ChunkAnswer:
    """The outcome of one chunk; a request to stop is no failure of it."""
    chunk = write.chunk
    try:
        return sink.write(write)
    except (JobCancelled, JobDeadlineExceeded):
        raise
    except TidemarkError as error:
        problem = error
    except Exception as error:  # noqa: BLE001 - the edge of a chunk: Spark and a user's function may raise anything
        sink.stop_if_due()  # what was cancelled fails in Spark's words
        problem = named_apply_error(str(error)) or named_failure(error)
    return ChunkAnswer(chunk.token, chunk.number, error=problem.to_record())


def _line(answer: ChunkAnswer, number: int, of: int) -> str:
    place = f"chunk {number} of {of} (partition {answer.token}, {answer.number})"
    if answer.error is not None:
        return f"{place} failed: {answer.error.message}"
    rows = "rows not counted" if answer.rows is None else f"{answer.rows} rows"
    return f"{place} {'was there already' if answer.found else 'written'}: {rows}"
