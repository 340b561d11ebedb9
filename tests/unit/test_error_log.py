"""An error of ours is a line that helps, without the frames that led to it; a lost window names its stream."""

from __future__ import annotations

import io
import logging
import traceback
from typing import Any

import pytest

from tidemark.errors import TableNotFound, TidemarkError, VersionVacuumed
from tidemark.operators._error_log import useful_line_first


class Parent:
    @useful_line_first
    def execute(self, context: Any) -> str:
        try:
            return self.deeper(context)
        except KeyError as error:
            raise TableNotFound(path="file:///lake/shop/odrers") from error

    def deeper(self, context: Any) -> str:
        return str(context["here"])


class Child(Parent):
    @useful_line_first
    def execute(self, context: Any) -> str:
        return super().execute(context)


def test_the_useful_line_comes_first_once_and_alone(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "tidemark.operators"), pytest.raises(TableNotFound) as raised:
        Child().execute({})

    (line,) = caplog.messages
    assert line.startswith("TableNotFound: No table exists at file:///lake/shop/odrers")
    shown = "".join(traceback.format_exception(raised.value))
    assert "KeyError" not in shown
    assert "deeper" not in shown


def test_all_that_led_to_it_is_told_at_level_debug(caplog: pytest.LogCaptureFixture) -> None:
    told = io.StringIO()
    handler = logging.StreamHandler(told)  # formats at once, before the error loses its frames, and in nobody's way
    logger = logging.getLogger("tidemark.operators")
    logger.addHandler(handler)
    try:
        with caplog.at_level(logging.DEBUG, logger.name), pytest.raises(TidemarkError):
            Parent().execute({})
    finally:
        logger.removeHandler(handler)

    assert "deeper" in told.getvalue()
    assert "KeyError" in told.getvalue()


def test_what_is_no_error_of_ours_stays_as_it_is() -> None:
    with pytest.raises(TypeError) as raised:
        Parent().execute(None)

    assert "deeper" in "".join(traceback.format_exception(raised.value))
    assert Child().execute({"here": 1}) == "1"


def test_a_window_that_is_gone_names_its_stream_and_what_helps() -> None:
    facts: dict[str, Any] = {"table": "t", "start": 1, "end": 2, "count": 1, "first": "f.parquet"}

    said = str(VersionVacuumed(**facts, reader="the stream 'orders.changes'"))

    assert "lost for the stream 'orders.changes'" in said
    for helps in ("AdvanceStreamOperator", "RebaseStreamOperator", "lake.rebase_stream", "VacuumTableOperator"):
        assert helps in said
    assert "lost for this reader" in str(VersionVacuumed(**facts))
