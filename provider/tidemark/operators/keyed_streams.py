"""Making streams that tell rows apart by key columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidArgument
from tidemark.operators._constants import check_constants
from tidemark.operators._plans import names_of
from tidemark.operators.streams import CreateStreamOperator

if TYPE_CHECKING:
    from tidemark.streams.worker.defining import StreamRequest

__all__ = ["CreateKeyedStreamOperator"]


class CreateKeyedStreamOperator(CreateStreamOperator):
    """Creates a stream on a Delta table that compares rows by key columns, or keeps an existing one and its offset.

    It suits a table that is reloaded as a whole, since it shows real changes only. It also suits a table that may not
    be altered. Row tracking may be off, and nothing is changed on the table. Its mode is `standard`; METADATA$ROW_ID is
    the table's id, a colon, and the key as canonical JSON. Keys must be unique. If a version has a changed row's key
    twice, the consumption fails with KeyNotUnique and delivers nothing.

    A second run finds the stream and changes nothing. Raises InvalidArgument for an unknown column, or one of a type
    that does not compare exactly. Raises StreamExists if a stream of that name reads another table or by other keys,
    and all that CreateStreamOperator raises.

    :param stream: name of the stream. (templated)
    :param on: the table that it reads: a path, `schema.table` under the lake root, or `catalog.schema.table`. A job
        asks Spark's catalog for the latter. (templated)
    :param keys: the columns that identify a row, one name or several. (templated)
    :param show_initial_rows: the first consumption delivers the rows that the table has at the stream's start.
        (templated)
    :param at: where to start: a version, or a time with a zone; None is the newest version. (templated)
    :param or_replace: begin a new stream even if one exists. Each run then loses the offset. (templated)
    :param comment: shown with the stream. (templated)
    :param mode: that of CreateStreamOperator; no mode but `standard` compares by key.
    :param enable_row_tracking: that of CreateStreamOperator; a stream by key does without.
    """

    template_fields: Sequence[str] = (
        "stream", "on", "keys", "show_initial_rows", "at", "or_replace", "comment", "conn_id",
    )  # fmt: skip

    def __init__(
        self,
        *,
        stream: str,
        on: str,
        keys: str | Sequence[str],
        show_initial_rows: bool | str = False,
        at: int | str | datetime | None = None,
        or_replace: bool | str = False,
        comment: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            stream=stream,
            on=on,
            show_initial_rows=show_initial_rows,
            at=at,
            or_replace=or_replace,
            comment=comment,
            **kwargs,
        )
        self.keys = keys
        check_constants(self, keys=_key_columns)

    def _request(self) -> StreamRequest:
        return replace(super()._request(), keys=_key_columns("keys", self.keys))


def _key_columns(argument: str, value: str | Sequence[str]) -> tuple[str, ...]:
    found = names_of(argument, value)
    if not found:
        raise InvalidArgument(argument=argument, value=value, problem="name one column at least")
    return found
