"""Bodies of requests: bounded, decompressed, and read as rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tidemark.channels.driver.json_rows import rows_of_json
from tidemark.channels.driver.service.arrow_bodies import table_of_stream
from tidemark.channels.driver.table_spec import TableSpec
from tidemark.errors import BodyTooLarge, BodyUnreadable

__all__ = ["ARROW", "JSON_LINES", "plain", "rows_of_body"]

ARROW = "application/vnd.apache.arrow.stream"
JSON_LINES = "application/x-ndjson"
_CODECS = {"gzip": "gzip", "zstd": "zstd"}
_JSON = (JSON_LINES, "application/ndjson", "application/jsonl", "application/json")


def plain(body: bytes, encoding: str | None, limit: int) -> bytes:
    """The body without its compression (gzip or zstd). Raises BodyTooLarge and BodyUnreadable."""
    name = (encoding or "identity").strip().lower()
    if name == "identity":
        return body
    if name not in _CODECS:
        raise BodyUnreadable(problem=f"Content-Encoding {name!r} is neither gzip nor zstd")
    try:
        with pa.CompressedInputStream(pa.BufferReader(body), _CODECS[name]) as stream:
            found = bytes(stream.read(limit + 1))
    except (pa.ArrowException, OSError) as error:
        raise BodyUnreadable(problem=f"it is not {name}: {error}") from None
    if len(found) > limit:
        raise BodyTooLarge(limit=limit)
    return found


def rows_of_body(data: bytes, media_type: str | None, spec: TableSpec, limit: int) -> Any:
    """The rows of a body, as a channel takes them. Raises BodyTooLarge and BodyUnreadable."""
    kind = (media_type or JSON_LINES).partition(";")[0].strip().lower()
    if kind in _JSON:
        return rows_of_json(data, spec)
    if kind != ARROW:
        raise BodyUnreadable(problem=f"Content-Type {kind!r} is neither {JSON_LINES} nor {ARROW}")
    return table_of_stream(data, limit)
