"""Making streams on views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidArgument
from tidemark.operators._base import flag_of
from tidemark.operators._constants import check_constants
from tidemark.operators.streams import CreateStreamOperator
from tidemark.streams.planning.arguments import mode_of, start_of

if TYPE_CHECKING:
    from tidemark.model.streams import StreamMode
    from tidemark.streams.worker.defining import StreamRequest

__all__ = ["CreateViewStreamOperator"]


class CreateViewStreamOperator(CreateStreamOperator):
    """Creates a stream on a view of Spark's catalog, or keeps an existing one and its offset (R70–R79).

    A job asks Spark what the view reads. All jobs must see the catalog: a metastore, or that of a Spark Connect server.
    A second run finds the stream and changes nothing. Raises ViewRefused with the place in the text, ViewTextMissing
    for a temporary view, and RowTrackingDisabled for a base table. Raises StreamExists if a stream of that name reads
    something else.

    :param stream: name of the stream. (templated)
    :param on: name of the view in Spark's catalog. (templated)
    :param mode: `standard` (net changes) or `append_only` (inserted rows, as they were inserted). (templated)
    :param show_initial_rows: the first consumption delivers the rows that the view has at the stream's start.
        (templated)
    :param at: where to start: a time with a zone; None is now. A version is refused, since each base table has its own.
        (templated)
    :param enable_row_tracking: turn row tracking on in each base table without it, by jobs with up to three commits on
        each. (templated)
    :param or_replace: begin a new stream even if one exists. Each run then loses the offset. (templated)
    :param beyond_snowflake: the view may group, use DISTINCT, and have outer, semi and anti joins. (templated)
    :param comment: shown with the stream. (templated)
    """

    template_fields: Sequence[str] = (*CreateStreamOperator.template_fields, "beyond_snowflake")

    def __init__(
        self,
        *,
        stream: str,
        on: str,
        mode: str = "standard",
        show_initial_rows: bool | str = False,
        at: str | datetime | None = None,
        or_replace: bool | str = False,
        beyond_snowflake: bool | str = False,
        comment: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            stream=stream,
            on=on,
            mode=mode,
            show_initial_rows=show_initial_rows,
            at=at,
            or_replace=or_replace,
            comment=comment,
            **kwargs,
        )
        self.beyond_snowflake = beyond_snowflake
        check_constants(self, mode=_mode_of_view, at=_moment_of, beyond_snowflake=flag_of)

    def _request(self) -> StreamRequest:
        return replace(
            super()._request(),
            mode=_mode_of_view("mode", self.mode),
            at=_moment_of("at", self.at),
            on_view=True,
            beyond_snowflake=flag_of("beyond_snowflake", self.beyond_snowflake),
        )


def _moment_of(argument: str, value: int | str | datetime | None) -> datetime | None:
    found = start_of(argument, value)
    if isinstance(found, int):
        problem = "the tables of a view have a version each; give a time with a zone"
        raise InvalidArgument(argument=argument, value=value, problem=problem)
    return found


def _mode_of_view(_: str, value: str) -> StreamMode:
    from tidemark.changes.planning.source_keys import require_fitting_mode

    mode = mode_of(value)
    require_fitting_mode(mode, (), on_view=True)
    return mode
