"""Lines of files in a directory, in the order of their names (the log exporter of seed 001). A token is `file:line`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from tidemark.channels.driver.json_rows import JsonLines
from tidemark.errors import InvalidArgument
from tidemark.lake.file_listing import FileListing
from tidemark.lake.file_names import FileFilter
from tidemark.lake.storage import Storage
from tidemark.model.foreign_json import whole_number

__all__ = ["lines"]

_JSON = "json"
_TEXT = "text"


def lines(
    after_token: str | None,
    *,
    directory: str,
    glob: str | None = None,
    form: str = _JSON,
    rows_per_batch: int = 10_000,
    storage_options: dict[str, Any] | None = None,
) -> Iterator[tuple[Any, str]]:
    """(rows, token) of the lines behind a token, in batches. The file with the last name may grow.

    `form`: json for a JSON object in each line; text for rows with the columns file, line_number and line. The last
    line of the last file counts once it has its newline. Files must not change otherwise, and later files need later
    names. Raises InvalidArgument for a token that is no line of the directory, such as one of a file that was cut.
    """
    if form not in (_JSON, _TEXT):
        raise InvalidArgument(argument="form", value=form, problem=f"it must be {_JSON} or {_TEXT}")
    last, at = _place(after_token)
    storage = Storage(directory, storage_options)
    listing = FileListing(directory, options=storage_options, only=FileFilter(glob=glob) if glob else None)
    names = sorted(file.name for page in listing.pages() for file in page if file.problem is None)
    if last is not None and last not in names:
        problem = f"{directory} has no file of that name; set the channel's offset token to a line that exists"
        raise InvalidArgument(argument="offset_token", value=after_token, problem=problem)
    for name in names:
        if last is None or name >= last:
            whole = _whole_lines(storage, name, may_grow=name == names[-1])
            skipped = at if name == last else 0
            if (found := sum(1 for _ in islice(whole, skipped))) < skipped:
                problem = f"{name} has {found} lines, so it was cut or replaced, and lines of it may be lost; set the"
                problem += " channel's offset token to a line that exists"
                raise InvalidArgument(argument="offset_token", value=after_token, problem=problem)
            yield from _batches(whole, name, skipped, form, rows_per_batch)


def _place(token: str | None) -> tuple[str | None, int]:
    if token is None:
        return None, 0
    name, _, text = token.rpartition(":")
    number = whole_number(text)
    if not name or number is None:
        raise InvalidArgument(argument="offset_token", value=token, problem="it must be file:line")
    return name, number


def _whole_lines(storage: Storage, name: str, *, may_grow: bool) -> Iterator[bytes]:
    with storage.open(name) as file:
        ended = (line if may_grow or line.endswith(b"\n") else line + b"\n" for line in file)
        yield from (line for line in ended if line.endswith(b"\n"))


def _batches(whole: Iterator[bytes], name: str, at: int, form: str, size: int) -> Iterator[tuple[Any, str]]:
    while batch := list(islice(whole, size)):
        numbered = [(at + n, line) for n, line in enumerate(batch, 1)]
        at += len(batch)
        yield _rows(name, numbered, form), f"{name}:{at}"


def _rows(name: str, numbered: Sequence[tuple[int, bytes]], form: str) -> Any:
    if form == _TEXT:
        return [_text_row(name, number, line) for number, line in numbered]
    filled = [(number, line) for number, line in numbered if line.strip()]
    return JsonLines([line for _, line in filled], lambda index: f"{name}:{filled[index][0]}")


def _text_row(name: str, number: int, line: bytes) -> dict[str, Any]:
    return {"file": name, "line_number": number, "line": line.decode(errors="replace").rstrip("\r\n")}
