"""The document by which streams go from one control store to another: JSON, with a number for its form.

The fields of a stream are taken from the model as it is. So a field that a release adds travels, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tidemark.errors import DocumentUnreadable, ImportRefused
from tidemark.model.codec import from_plain, to_plain
from tidemark.model.foreign_json import parsed
from tidemark.model.invalid_values import invalid_value
from tidemark.model.streams import Stream

__all__ = ["FORM", "ExportedStream", "StreamDocument", "document_of", "parse_document"]

FORM = 1
NAME_OF_FORM = "tidemark_streams"
HIGHEST = 2**63 - 1  # what every store can keep
LONGEST_UID, LONGEST_ID = 36, 64


@dataclass(frozen=True)
class ExportedStream:
    """A stream as it was, and the transaction that held it, in words: the offset does not count that transaction's
    windows.

    The stream's serial is the highest one whose writes are settled, so below those of `open_transaction`.
    """

    stream: Stream
    open_transaction: str | None = None


@dataclass(frozen=True)
class StreamDocument:
    """Streams of one store at one moment."""

    exported_at: datetime
    store_id: str
    streams: tuple[ExportedStream, ...]


def document_of(document: StreamDocument) -> dict[str, Any]:
    """The form in which it is kept."""
    return {NAME_OF_FORM: FORM, **to_plain(document)}


def parse_document(document: str | Mapping[str, Any]) -> StreamDocument:
    """The inverse of `document_of`, also of its JSON text; every field checked.

    Raises DocumentUnreadable for another form or one that is no document at all, ImportRefused with stream and field.
    """
    plain = _plain(document)
    if plain.get(NAME_OF_FORM) != FORM:
        problem = f"this release reads form {FORM}, not {plain.get(NAME_OF_FORM)!r}"
        raise DocumentUnreadable(field=NAME_OF_FORM, problem=problem)
    body = {name: part for name, part in plain.items() if name != NAME_OF_FORM}
    entries = body.get("streams")
    for number, entry in enumerate(entries if isinstance(entries, list) else (), start=1):
        _require_fit(entry, number)
    wrong = invalid_value(StreamDocument, body)
    if wrong is not None:
        raise DocumentUnreadable(field=wrong.field, problem=wrong.problem)
    found: StreamDocument = from_plain(StreamDocument, body)
    for exported in found.streams:
        _require_sense(exported.stream)
    _require_each_once(found.streams)
    return found


def _plain(document: str | Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        plain = parsed(document) if isinstance(document, str) else document
    except ValueError as error:
        raise DocumentUnreadable(field="text", problem=f"it is not JSON ({error})") from error
    if not isinstance(plain, Mapping):
        raise DocumentUnreadable(field="text", problem="it holds no mapping")
    return plain


def _require_fit(entry: Any, number: int) -> None:
    wrong = invalid_value(ExportedStream, entry)
    if wrong is None:
        return
    stream = entry.get("stream") if isinstance(entry, dict) else None
    name = stream.get("name") if isinstance(stream, dict) else None
    called = name if isinstance(name, str) else f"number {number}"
    raise ImportRefused(stream=called, field=wrong.field.removeprefix("stream."), problem=wrong.problem)


def _require_sense(stream: Stream) -> None:
    """Check what the types leave open. Raises ImportRefused."""
    for field, problem in _contradictions(stream):
        raise ImportRefused(stream=stream.name, field=field, problem=problem)


def _contradictions(stream: Stream) -> Iterable[tuple[str, str]]:
    numbers = {"offset.version": stream.offset.version, "serial": stream.serial}
    numbers |= {f"view_bases[{n}].version": base.version for n, base in enumerate(stream.view_bases)}
    for field, number in numbers.items():
        if not 0 <= number <= HIGHEST:
            yield field, f"{number} is none that a table or a store can have"
    if not 0 < len(stream.uid) <= LONGEST_UID:
        yield "uid", f"it has 1 to {LONGEST_UID} characters"
    if not 0 < len(stream.source.table_id) <= LONGEST_ID:
        yield "source.table_id", f"it has 1 to {LONGEST_ID} characters"
    if stream.offset.table_id != stream.source.table_id:
        yield "offset.table_id", "it is not that of the source"
    yield from _contradictions_of_view(stream)


def _contradictions_of_view(stream: Stream) -> Iterable[tuple[str, str]]:
    needed = 0 if stream.view is None else len(stream.view.bases)
    if len(stream.view_bases) != needed:
        yield "view_bases", f"the stream reads {needed} tables through a view, not {len(stream.view_bases)}"
    elif needed and sum(base.version for base in stream.view_bases) != stream.offset.version:
        yield "offset.version", "it is not the sum of those of the view's tables"
    if stream.view is not None and stream.view.digest != stream.source.table_id:
        yield "view.digest", "it is not the id of the source"


def _require_each_once(streams: Iterable[ExportedStream]) -> None:
    seen: set[tuple[str, str]] = set()
    for stream in (exported.stream for exported in streams):
        for field, value in (("name", stream.name.casefold()), ("uid", stream.uid)):
            if (field, value) in seen:
                raise ImportRefused(stream=stream.name, field=field, problem="another stream of the document has it")
            seen.add((field, value))
