"""Errors of streams."""

from __future__ import annotations

from typing import Any

from tidemark.errors.tree import TidemarkError

__all__ = [
    "DocumentUnreadable",
    "ImportRefused",
    "KeyColumnChanged",
    "KeyNotUnique",
    "PastWindowLost",
    "RebaseRefused",
    "RecoveryRefused",
    "RelocationRefused",
    "SourceRecreated",
    "StreamError",
    "StreamExists",
    "StreamLocked",
    "StreamNotFound",
    "StreamOnStream",
    "StreamStale",
    "TrackingInterrupted",
]


class StreamError(TidemarkError):
    """{message}"""


class StreamNotFound(StreamError):
    """Stream {stream!r} does not exist. {hint}Create it, or list the streams with `airflow tidemark streams list`."""

    hint: str

    def __init__(self, *, stream: str, hint: str = "") -> None:
        super().__init__(stream=stream, hint=hint)


class StreamExists(StreamError):
    """Object {stream!r} already exists: a stream on {source}. To keep it, ask for the same source, mode and keys in a
    task, or use IF NOT EXISTS in SQL. Use or_replace to start a new one at the current version, which loses the offset.
    """


class StreamOnStream(StreamError):
    """{source!r} is a stream, and a stream on a stream is not possible. Name the table that it reads: {table}."""


class StreamStale(StreamError):
    """The stream {stream!r} has become stale: its offset, version {version}, is outside the retained history of
    {table} ({reason}). Its unread changes can no longer be read. Re-base or recreate the stream to continue from now.
    """


class PastWindowLost(StreamStale):
    """The window of stream {stream!r} after version {version} cannot be replayed: it is outside the retained history of
    {table} ({reason}). The stream itself is not affected. Load the target from the table itself.
    """


class SourceRecreated(StreamError):
    """Base table {table!r} dropped, cannot read from stream {stream!r}: the table at {path} has the id {found}, and not
    {expected}. A recreated table is another table, even under the same name. {remedy}
    """

    def __init__(self, *, remedy: str = "Re-base the stream onto it, or recreate the stream.", **facts: Any) -> None:
        super().__init__(remedy=remedy, **facts)


class TrackingInterrupted(StreamError):
    """Change tracking is not enabled or has been missing for the time range requested on table {table!r} (stream
    {stream!r}): {problem}. {remedy}
    """

    def __init__(
        self, *, remedy: str = "Re-base the stream, by key to lose nothing, or recreate it.", **facts: Any
    ) -> None:
        super().__init__(remedy=remedy, **facts)


class KeyNotUnique(StreamError):
    """The key columns {columns} do not identify a row of {table}: version {version} has {times} changed rows with
    {key}. So the stream {stream!r} cannot compare by them. Nothing was delivered. Make the keys unique
    and advance the stream past version {version}, or recreate it with other keys.
    """


class KeyColumnChanged(StreamError):
    """The stream {stream!r} compares {table} by the column {column!r}, which {problem}. Changes in ({start}, {end}]
    cannot be found by key. Read the stream up to the version before with max_commits, then recreate it.
    """


class StreamLocked(StreamError):
    """Stream {stream!r} is held by the open transaction {holder} of {owner} until {until}, or longer if that renews its
    lease. Try again when that has ended. If {owner} is gone, the next transaction after that time finishes it, or
    releases it if it was never submitted.
    """

    def __init__(self, **facts: Any) -> None:
        super().__init__(**{"owner": "another consumer", **facts})


class RecoveryRefused(StreamError):
    """Stream {stream!r} was not recovered, and its offset has not moved: {problem}."""


class RebaseRefused(StreamError):
    """Stream {stream!r} was not re-based, and its offset has not moved: {problem}."""


class RelocationRefused(StreamError):
    """Stream {stream!r} was not relocated, and still reads its old location: {problem}."""


class DocumentUnreadable(StreamError):
    """Nothing was imported: the document is not an export of streams that this release reads. Export the streams again,
    or import them with the release that exported them. {field}: {problem}
    """


class ImportRefused(StreamError):
    """Nothing was imported, as a stream of the document does not fit. Correct it there, or leave it out, and import the
    rest. Stream {stream!r}, field {field}: {problem}
    """
