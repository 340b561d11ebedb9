"""Which writer has a channel, by the record in its table."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tidemark.channels.driver.orders import Drop
from tidemark.channels.model.channels import ChannelRecord, StatusCode
from tidemark.channels.planning.listing import shown_channel
from tidemark.channels.planning.owners import Ended, fate_of, loss_of
from tidemark.channels.planning.records import Advance, advanced, opened, rewound, time_of, with_token

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = NOW + timedelta(seconds=1)
OWN = opened(None, "id-1", by="first", token=None, now=NOW)
NEXT = advanced(OWN, Advance("7", 1, 1, 0, 5), NOW)


def code(found: ChannelRecord | None) -> StatusCode | None:
    loss = loss_of(OWN, found)
    return None if loss is None else loss.code


def test_a_record_whose_times_no_calendar_has_is_still_shown() -> None:
    """A record that another writer garbled must not hide the other channels of the table."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    plain = opened(None, "t", by="me", token=None, now=now)
    for wild in (2**63 - 1, -(2**63) + 1, 10**15):
        odd = replace(plain, created_on=wild, last_ingest=wild, opened_on=wild, last_error_timestamp=wild)
        shown = shown_channel("c", odd, {"database": "d", "schema": "s", "table": "t"}, now)
        assert shown.last_ingest.year == (9999 if wild > 0 else 1)
    assert time_of(plain.created_on) == now


def test_a_writer_keeps_its_channel_until_another_opens_drops_or_restores_it() -> None:
    assert [code(record) for record in (OWN, NEXT, with_token(NEXT, "9"))] == [None, None, None]
    assert code(opened(NEXT, "id-1", by="second", token=None, now=LATER)) is StatusCode.TAKEN
    assert code(None) is StatusCode.GONE
    assert code(rewound(NEXT, OWN, reason="It was restored.", is_known=True)) is StatusCode.MUST_REOPEN


def test_a_channel_that_was_dropped_and_opened_by_another_fences_its_writer() -> None:
    """Its opens and rows are counted from the beginning, as those of the writer were."""
    theirs = opened(None, "id-1", by="second", token=None, now=LATER)
    assert theirs.client_sequencer == OWN.client_sequencer
    assert code(theirs) is StatusCode.TAKEN
    for tried in (None, NEXT):
        fate = fate_of(OWN, tried, theirs)
        assert isinstance(fate, Ended)
        assert "second opened it at 2026-01-02 03:04:06 UTC" in fate.problem
    assert Drop(key="C", table="a.b", own=OWN).record(theirs, "id-1", LATER) is theirs
    assert Drop(key="C", table="a.b", own=theirs).record(theirs, "id-1", LATER) is None


def test_the_fate_of_a_commit_follows_from_the_record() -> None:
    assert fate_of(OWN, NEXT, NEXT) is True
    assert fate_of(OWN, NEXT, OWN) is False
    fate = fate_of(OWN, None, replace(NEXT, row_sequencer=2))
    assert isinstance(fate, Ended)
    assert fate.code is StatusCode.OUT_OF_ORDER
