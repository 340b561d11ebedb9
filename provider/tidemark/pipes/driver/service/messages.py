"""Answers of the service about pipes, by the names of the source system."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from tidemark.pipes.driver.service.reports import FileLoad, Recent, Span
from tidemark.pipes.model.files import FileStatus

__all__ = ["FileEntry", "FilesInserted", "InsertReport", "LoadHistory", "Statistics", "time_in_words"]


class _Answer(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class FilesInserted(_Answer):
    """The files are in the pipe's queue, except those that its pattern leaves out. The first 100 of them are named."""

    request_id: str
    status: str = "SUCCESS"
    unmatched_pattern_first_n_files: list[str] | None = None


class FileEntry(_Answer):
    """A file whose load has ended. `errorLimit`: the number of errors from which on it is skipped."""

    path: str
    stage_location: str | None
    file_size: int
    time_received: str | None
    last_insert_time: str
    rows_inserted: int
    rows_parsed: int
    errors_seen: int
    error_limit: int | None
    first_error: str | None
    first_error_line_num: int | None
    first_error_character_pos: int | None
    first_error_column_name: str | None
    system_error: str | None
    complete: bool
    status: FileStatus

    @classmethod
    def of(cls, load: FileLoad) -> FileEntry:
        """The answer about a load."""
        facts = load.facts
        return cls(
            path=facts["file"],
            stage_location=None if facts["location"] is None else f"{facts['location']}/",
            file_size=facts["size"] or 0,
            time_received=None if facts["received_at"] is None else time_in_words(facts["received_at"]),
            last_insert_time=time_in_words(load.loaded_at),
            rows_inserted=facts["rows_loaded"],
            rows_parsed=facts["rows_parsed"],
            errors_seen=facts["errors_seen"],
            error_limit=facts["error_limit"],
            first_error=facts["first_error"],
            first_error_line_num=facts["first_error_line"],
            first_error_character_pos=facts["first_error_character"],
            first_error_column_name=facts["first_error_column"],
            system_error=facts["system_error"],
            complete=True,
            status=facts["status"],
        )


class Statistics(_Answer):
    """`activeFilesCount`: files that wait or are being loaded."""

    active_files_count: int


class InsertReport(_Answer):
    """The last loads of a pipe. `completeResult` is false if one is missing between `beginMark` and the first of them.
    `nextBeginMark`: of the next request.
    """

    pipe: str
    complete_result: bool
    next_begin_mark: str
    statistics: Statistics
    files: list[FileEntry]

    @classmethod
    def of(cls, pipe: str, found: Recent) -> InsertReport:
        """The answer about the last loads."""
        return cls(
            pipe=pipe,
            complete_result=found.is_whole,
            next_begin_mark=found.mark.to_text(),
            statistics=Statistics(active_files_count=found.active),
            files=[FileEntry.of(load) for load in found.loads],
        )


class LoadHistory(_Answer):
    """The loads of a pipe between two times. If `completeResult` is false, `rangeEndTime` is the start of the next
    request; else it is the time of the last load.
    """

    pipe: str
    complete_result: bool
    start_time_inclusive: str
    end_time_exclusive: str
    range_start_time: str | None
    range_end_time: str | None
    files: list[FileEntry]

    @classmethod
    def of(cls, pipe: str, start: datetime, end: datetime, found: Span) -> LoadHistory:
        """The answer about the loads of a span."""
        last = found.goes_on_at or (found.loads[-1].loaded_at if found.loads else None)
        return cls(
            pipe=pipe,
            complete_result=found.goes_on_at is None,
            start_time_inclusive=time_in_words(start),
            end_time_exclusive=time_in_words(end),
            range_start_time=time_in_words(found.loads[0].loaded_at) if found.loads else None,
            range_end_time=None if last is None else time_in_words(last),
            files=[FileEntry.of(load) for load in found.loads],
        )


def time_in_words(time: datetime) -> str:
    """The time in UTC, to the millisecond."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
