"""Rows and offset tokens are committed together, by one writer per channel (seed 001)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.engine.channels.landing import Landing
from tests.until import wait_until
from tidemark.channels.driver.limits import Limits
from tidemark.channels.model.channels import StatusCode
from tidemark.channels.model.rows import RowErrorKind
from tidemark.errors import (
    ChannelClosed,
    ChannelHasUncommittedRows,
    ChannelInvalid,
    ChannelNotFound,
    InvalidArgument,
    RowsRefused,
    TableNotFound,
    TokenOutOfOrder,
)

pytestmark = pytest.mark.spark


@pytest.mark.quick
def test_rows_and_token_are_in_the_table_together(landing: Landing) -> None:
    landing.create()
    with landing.client() as client:
        channel = client.open_channel("orders_1", "orders")
        assert (channel.name, channel.offset_token) == ("ORDERS_1", None)
        channel.insert_rows([{"id": 1, "name": "a"}], "1")
        channel.insert_rows([{"id": 2, "name": "b"}], "2")
        assert channel.latest_committed_offset_token() is None
        channel.flush()
        assert channel.latest_committed_offset_token() == "2"
        assert landing.rows() == [(1, "a"), (2, "b")]
        before = landing.log().head()
        channel.flush()
        assert landing.log().head() == before


def test_rows_are_committed_within_the_lag_without_a_flush(landing: Landing) -> None:
    landing.create()
    with landing.client() as client:
        client.open_channel("c", "orders").insert_rows([{"id": 1}], "1")
        wait_until(lambda: landing.token("C") == "1")
        assert landing.rows(columns="id") == [(1,)]


def test_the_channels_of_a_table_are_committed_together(landing: Landing) -> None:
    landing.create()
    with landing.client(max_client_lag="10 minutes") as client:
        channels = [client.open_channel(f"c{number}", "orders") for number in range(20)]
        before = landing.log().head()
        for number, channel in enumerate(channels):
            channel.insert_rows([{"id": number, "name": f"{at}"} for at in range(3)], str(number))
        channels[0].flush()
        assert landing.log().head() == before + 1
        (commit,) = landing.log().commits(before, before + 1)
        assert len(commit.adds) == 1
        assert [channel.latest_committed_offset_token() for channel in channels] == [str(n) for n in range(20)]
        # Rows of a channel keep their order in the file, and therefore in their row ids.
        rows = landing.sql("SELECT id, name FROM {t} ORDER BY _metadata.row_id")
        assert [tuple(row) for row in rows] == [(n, str(at)) for n in range(20) for at in range(3)]


def test_a_batch_over_the_advised_size_is_a_warning_once(landing: Landing, caplog: Any) -> None:
    landing.create()
    mib = {"name": "x" * (1 << 20)}
    with landing.client() as client:
        channel, other = (client.open_channel(name, "orders") for name in ("c", "d"))
        channel.insert_rows([mib] * 15, "15")
        assert "MiB" not in caplog.text
        for token in ("32", "49"):
            channel.insert_rows([mib] * 17, token)
        assert caplog.text.count("Channel C of table orders: a batch has 17.0 MiB") == 1
        other.insert_rows([mib] * 17, "17")
        assert "Channel D" in caplog.text
    assert landing.rows(columns="count(*)") == [(66,)]


def test_a_token_needs_no_row(landing: Landing) -> None:
    landing.create()
    with landing.client() as client:
        channel = client.open_channel("c", "orders", on_error="continue", offset_token="begin")
        assert landing.token("C") == channel.offset_token == "begin"
        channel.insert_rows([], "moved")
        channel.flush()
        assert landing.token("C") == "moved"
        answer = channel.insert_rows([{"id": "no number"}, {"other": 1}], "bad")
        assert [error.kind for error in answer.errors] == [RowErrorKind.INVALID_VALUE, RowErrorKind.EXTRA_COLUMN]
        channel.flush()
        record = landing.records()["C"]
        assert (record.offset_token, record.rows_parsed, record.rows_error_count) == ("bad", 2, 2)
        assert (record.last_error_offset_upper_bound, record.last_error_message) == (
            "bad",
            "row 1: column other: the table has no such column",
        )
        assert landing.rows() == []


BATCH = [{"id": 1}, {"id": "x"}, {"id": 3}, {"name": b""}]


@pytest.mark.parametrize(
    ("on_error", "kept", "token", "errors"),
    [("abort", [], "0", None), ("skip_batch", [], "0", [1, 3]), ("CONTINUE", [1, 3], "9", [1, 3])],
)
def test_bad_rows_are_handled_as_on_error_says(
    landing: Landing, on_error: str, kept: list[int], token: str, errors: list[int] | None
) -> None:
    landing.create()
    with landing.client() as client:
        channel = client.open_channel("c", "orders", on_error=on_error, offset_token="0")
        if errors is None:
            with pytest.raises(RowsRefused, match=r"row 1, column id: 'x' \(str\) is not a number"):
                channel.insert_rows(BATCH, "9")
        else:
            answer = channel.insert_rows(BATCH, "9")
            assert [error.row_index for error in answer.errors] == errors
            assert answer.has_errors
            assert answer.rows == len(kept)
        channel.flush()
        assert [row[0] for row in landing.rows()] == kept
        assert landing.token("C") == token


def test_a_reopened_channel_has_one_writer_and_its_committed_token(landing: Landing) -> None:
    landing.create()
    first, second = landing.client("first"), landing.client("second")
    old = first.open_channel("c", "orders")
    old.insert_rows([{"id": 1}, {"id": 2}], "2")
    old.flush()
    new = second.open_channel("C", "orders")
    assert new.offset_token == "2"
    old.insert_rows([{"id": 3}], "3")  # fencing is lazy: the buffer takes it
    with pytest.raises(ChannelInvalid, match=r"code 20.*second opened it at") as raised:
        old.flush()
    assert raised.value.facts["offset_token"] == "2"
    with pytest.raises(ChannelInvalid):
        old.insert_rows([{"id": 4}], "4")
    assert old.status().code is StatusCode.TAKEN
    new.insert_rows([{"id": 7}, {"id": 8}], "8")
    new.flush()
    assert landing.rows(columns="id") == [(1,), (2,), (7,), (8,)]


def test_a_writer_that_lost_its_channel_is_told_when_it_asks_for_the_token(landing: Landing) -> None:
    """The new owner's token, or that of nobody, would let it remove rows from its source that are not committed."""
    landing.create()
    first, second = (landing.client(name, max_client_lag="10 minutes") for name in ("first", "second"))
    fenced, dropped = (first.open_channel(name, "orders") for name in ("c", "d"))
    for channel in (fenced, dropped):
        channel.insert_rows([{"id": 1}], "1")
    with second.open_channel("c", "orders") as new:
        new.insert_rows([{"id": 2}], "2")
    second.drop_channel("d", "orders")
    with pytest.raises(ChannelInvalid, match=r"code 20.*second opened it at.*which is '2'"):
        fenced.latest_committed_offset_token()
    with pytest.raises(ChannelInvalid, match=r"code 19.*dropped"):
        dropped.latest_committed_offset_token()
    for channel in (fenced, dropped):
        with pytest.raises(ChannelInvalid):
            channel.flush()
    assert landing.rows(columns="id") == [(2,)]


def test_a_fenced_neighbour_does_not_harm_the_other_channels(landing: Landing) -> None:
    landing.create()
    first, second = landing.client("first"), landing.client("second")
    channels = [first.open_channel(name, "orders") for name in ("a", "b", "c")]
    second.open_channel("b", "orders")
    for number, channel in enumerate(channels):
        channel.insert_rows([{"id": number}], str(number))
    channels[0].flush()
    assert landing.rows(columns="id") == [(0,), (2,)]
    assert [landing.token(name) for name in "ABC"] == ["0", None, "2"]
    assert [channel.status().code for channel in channels] == [StatusCode.OK, StatusCode.TAKEN, StatusCode.OK]


def test_uncommitted_rows_of_an_earlier_writer_are_discarded_or_refused(landing: Landing) -> None:
    landing.create()
    client = landing.client(max_client_lag="10 minutes")
    old = client.open_channel("c", "orders")
    old.insert_rows([{"id": 1}, {"id": 2}], "2")
    with pytest.raises(ChannelHasUncommittedRows, match="2 rows"):
        client.open_channel("c", "orders", fail_on_uncommitted_rows=True)
    new = client.open_channel("c", "orders")
    assert new.offset_token is None
    new.flush()
    with pytest.raises(ChannelInvalid, match=r"code 20.*opened it again"):
        old.flush()
    assert landing.rows() == []


def test_two_clients_write_one_table_and_nothing_is_lost(landing: Landing) -> None:
    landing.create()
    clients = [landing.client(f"client {number}") for number in range(2)]
    channels = [client.open_channel(f"c{number}", "orders") for number, client in enumerate(clients)]
    for at in range(12):
        for number, channel in enumerate(channels):
            channel.insert_rows([{"id": number * 100 + at}], str(at))
        channels[at % 2].flush()
    for channel in channels:
        channel.close()
    assert landing.rows(columns="id") == sorted(((n * 100 + at,) for n in range(2) for at in range(12)), key=repr)
    assert [landing.token(name) for name in ("C0", "C1")] == ["11", "11"]


def test_closing_flushes_and_keeps_the_token_and_dropping_removes_it(landing: Landing) -> None:
    landing.create()
    with landing.client() as client:
        channel = client.open_channel("c", "orders")
        channel.insert_rows([{"id": 1}], "1")
        channel.close()
        channel.close()
        assert landing.token("C") == "1"
        with pytest.raises(ChannelClosed):
            channel.insert_rows([{"id": 2}], "2")
        with client.open_channel("c", "orders") as again:
            assert again.offset_token == "1"
            again.close(drop=True)
        assert landing.records() == {}
        client.drop_channel("c", "orders")
        assert client.open_channel("c", "orders").offset_token is None


def test_a_writer_drops_only_its_own_channel_and_anybody_by_name(landing: Landing) -> None:
    landing.create()
    first, second = landing.client("first"), landing.client("second")
    old = first.open_channel("c", "orders")
    new = second.open_channel("c", "orders")
    old.close(drop=True)
    assert landing.records()["C"].opened_by == "second"
    first.drop_channel("c", "orders")
    new.insert_rows([{"id": 1}], "1")
    with pytest.raises(ChannelInvalid, match=r"code 19.*dropped"):
        new.flush()
    assert landing.rows() == []


def test_a_token_is_set_by_hand_and_fences_nobody(landing: Landing) -> None:
    landing.create()
    client, operator = landing.client(), landing.client("operator")
    channel = client.open_channel("c", "orders")
    operator.set_offset_token("c", "orders", "7")
    assert channel.latest_committed_offset_token() == "7"
    channel.insert_rows([{"id": 8}], "8")
    channel.flush()
    assert landing.token("C") == "8"
    operator.set_offset_token("c", "orders", None)
    assert channel.latest_committed_offset_token() is None
    with pytest.raises(ChannelNotFound):
        operator.set_offset_token("other", "orders", "1")


def test_names_have_no_case_unless_they_are_quoted(landing: Landing) -> None:
    landing.create()
    with landing.client() as client:
        for name in ("Topic-0:P1", '"Topic-0:P1"', "TOPIC-0:p1", '"a""b"'):
            client.open_channel(name, "orders")
        assert sorted(landing.records()) == ["TOPIC-0:P1", "Topic-0:P1", 'a"b']
        assert landing.records()["TOPIC-0:P1"].client_sequencer == 2


def test_tokens_out_of_order_are_a_warning_or_an_error(landing: Landing, caplog: Any) -> None:
    landing.create()

    def ascending(before: str | None, _: str | None, end: str | None, rows: int) -> bool:
        return before is None or end is None or int(end) >= int(before) + rows

    with landing.client() as client:
        lenient = client.open_channel("a", "orders", verify_tokens=ascending)
        lenient.insert_rows([{"id": 1}], "5")
        lenient.insert_rows([{"id": 2}], "5")
        assert "does not follow '5'" in caplog.text
        strict = client.open_channel("b", "orders", verify_tokens=ascending, strict_tokens=True)
        strict.insert_rows([{"id": 3}], "5")
        with pytest.raises(TokenOutOfOrder):
            strict.insert_rows([{"id": 4}], "5")
    assert landing.rows(columns="id") == [(1,), (2,), (3,)]


def test_a_verifier_sees_where_a_batch_starts(landing: Landing) -> None:
    landing.create()

    def gapless(before: str | None, start: str | None, _: str | None, __: int) -> bool:
        return start == before

    with landing.client() as client:
        channel = client.open_channel("c", "orders", verify_tokens=gapless, strict_tokens=True)
        channel.insert_rows([{"id": 1}], "5")
        channel.insert_rows([{"id": 2}], "9", start_offset_token="5")
        with pytest.raises(TokenOutOfOrder, match="'7' to '12' does not follow '9'"):
            channel.insert_rows([{"id": 3}], "12", start_offset_token="7")
    assert (landing.rows(columns="id"), landing.token("C")) == ([(1,), (2,)], "9")


LARGE = [{"id": number, "name": "n" * 100} for number in range(100)]


def test_a_buffer_of_its_limit_is_committed_before_its_time(landing: Landing) -> None:
    landing.create()
    client = landing.client(limits=Limits(lag=timedelta(minutes=10), channel_bytes=5_000))
    channel = client.open_channel("c", "orders")
    channel.insert_rows([{"id": -1}], "0")
    channel.insert_rows(LARGE, "1")
    wait_until(lambda: landing.token("C") == "1")
    assert len(landing.rows()) == len(LARGE) + 1


@pytest.mark.parametrize(
    ("how", "problem"),
    [
        ({"name": ""}, "1 to 255"),
        ({"name": "a\nb"}, "printable"),
        ({"on_error": "ignore"}, "abort, continue, skip_batch"),
        ({"default_timezone": "Mars/Base"}, "time zone"),
    ],
)
def test_a_bad_open_is_refused_before_anything_is_written(landing: Landing, how: dict[str, str], problem: str) -> None:
    landing.create()
    before = landing.log().head()
    with landing.client() as client, pytest.raises(InvalidArgument, match=problem):
        client.open_channel(**{"name": "c", "table": "orders", **how})
    assert landing.log().head() == before


@pytest.mark.parametrize("lag", ["0", "601", "11 minutes", "a second", "1 hour", "-1"])
def test_a_lag_out_of_its_bounds_is_refused(landing: Landing, lag: str) -> None:
    with pytest.raises(InvalidArgument, match="max_client_lag"):
        landing.client(max_client_lag=lag)


def test_a_table_that_is_not_there_is_named(landing: Landing) -> None:
    with landing.client() as client, pytest.raises(TableNotFound, match="nowhere"):
        client.open_channel("c", "nowhere")
