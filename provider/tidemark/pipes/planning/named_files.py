"""Files that somebody names for a pipe: the lists of requests, and their names below a location."""

from __future__ import annotations

import json
from typing import Any

from tidemark.errors import BodyUnreadable, InvalidArgument
from tidemark.model.foreign_json import parsed

__all__ = ["JSON", "LONGEST_NAME", "MOST_INSERTED", "TEXT", "files_of_body", "name_below"]

JSON, TEXT = "application/json", "text/plain"
MOST_INSERTED = 5_000  # files that one call may put into a queue, as there
LONGEST_NAME = 1_024  # bytes in UTF-8, as there
_SHOWN = 100  # characters of a bad value


def files_of_body(body: bytes, media_type: str | None) -> dict[str, int]:
    """The files of a request by name, with their sizes, 0 if unknown. JSON has them as
    {"files": [{"path": …, "size": …}]}, and a plain text has a name in each line.

    Raises BodyUnreadable, and InvalidArgument for no file, more than 5,000, and a name of more than 1,024 bytes.
    """
    kind = (media_type or JSON).partition(";")[0].strip().lower()
    if kind not in (JSON, TEXT):
        raise BodyUnreadable(problem=f"Content-Type {kind!r} is neither {JSON} nor {TEXT}")
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BodyUnreadable(problem=f"it is not UTF-8: {error.reason} at byte {error.start}") from None
    files = _of_json(text) if kind == JSON else _of_lines(text)
    if not 0 < len(files) <= MOST_INSERTED:
        problem = f"one request takes 1 to {MOST_INSERTED:,} files"
        raise InvalidArgument(argument="files", value=f"{len(files):,} files", problem=problem)
    return {_named(place, name): size for place, name, size in files}


def name_below(prefix: str, name: str) -> str:
    """The name of a file below a location, by its name behind a prefix. Raises InvalidArgument for a name that leads
    elsewhere.
    """
    whole = prefix + name.lstrip("/") if not prefix or prefix.endswith("/") else prefix + name
    if any(part in ("", ".", "..") for part in whole.split("/")):
        problem = "it must be the name of a file below the location, without . and .."
        raise InvalidArgument(argument="files", value=name, problem=problem)
    return whole


def _of_lines(text: str) -> list[tuple[str, Any, int]]:
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return [(f"line {number}", line, 0) for number, line in enumerate(lines, 1) if line]


def _of_json(text: str) -> list[tuple[str, Any, int]]:
    try:
        found = parsed(text)
    except ValueError as error:
        raise BodyUnreadable(problem=f"it is not JSON: {error}") from None
    files = found.get("files") if isinstance(found, dict) else None
    if not isinstance(files, list):
        raise BodyUnreadable(problem='it must be an object with a list: {"files": [{"path": "a.csv", "size": 100}]}')
    return [_entry(f"files[{number}]", one) for number, one in enumerate(files)]


def _entry(place: str, entry: Any) -> tuple[str, Any, int]:
    if not isinstance(entry, dict) or "path" not in entry:
        raise InvalidArgument(argument=place, value=_short(entry), problem='it must be an object with a "path"')
    size = entry.get("size")
    is_size = size is None or (isinstance(size, int) and not isinstance(size, bool) and 0 <= size < 1 << 63)
    if not is_size:
        raise InvalidArgument(argument=f"{place}.size", value=_short(size), problem="it must be a number of bytes")
    return f"{place}.path", entry["path"], size or 0


def _named(place: str, name: Any) -> str:
    if not isinstance(name, str) or not name.strip("/"):
        raise InvalidArgument(argument=place, value=_short(name), problem="it must be the name of a file")
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        raise InvalidArgument(argument=place, value=_short(name), problem="it is not Unicode text") from None
    if length > LONGEST_NAME or "\0" in name:
        problem = f"a name has at most {LONGEST_NAME:,} bytes in UTF-8, and no NUL; this one has {length:,} bytes"
        raise InvalidArgument(argument=place, value=_short(name), problem=problem)
    return name


def _short(value: Any) -> str:
    shown = value if isinstance(value, str) else json.dumps(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
