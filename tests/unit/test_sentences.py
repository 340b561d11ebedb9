"""Words of several writers about one object read as sentences."""

from __future__ import annotations

from datetime import UTC, datetime

from tidemark.control.object_histories import WITHOUT
from tidemark.control.object_kinds import Severity
from tidemark.control.object_list import ShownObject
from tidemark.control.sentences import one_text
from tidemark.plugins.monitor.history_answers import KeptHistory, history_answer

NOW = datetime(2026, 11, 29, tzinfo=UTC)


def test_a_sentence_ends_before_the_next_part() -> None:
    assert one_text("It failed.", "late", None, "", "stale") == "It failed. late; stale"
    assert one_text(None, "") is None


def test_a_history_that_cannot_be_read_says_why_after_where_it_is() -> None:
    one = ShownObject("landing_table", "a", "u", None, None, "open", Severity.OK, None, None)
    kept = KeptHistory("c", one, (), 0, {}, trouble="Its log could not be read.")
    assert history_answer(kept, ("c",), NOW, ()).elsewhere == f"{WITHOUT['landing_table']} Its log could not be read."
