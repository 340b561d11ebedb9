"""A client of the ingest service writes as one that commits by itself, and needs no JVM."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from tests.engine.channels.landing import Landing
from tests.engine.channels.served import grant, served
from tidemark.channels.planning.names import key_of
from tidemark.client.ingest_service import ServiceClient
from tidemark.errors import (
    ChannelInvalid,
    IngestServiceRefused,
    IngestUnavailable,
    InvalidArgument,
    RowsRefused,
    TokenOutOfOrder,
)

pytestmark = pytest.mark.spark

COLUMNS = "id BIGINT, at TIMESTAMP, day DATE, price DECIMAL(10,2), raw BINARY"


@pytest.fixture
def address(landing: Landing, tmp_path: Path) -> Iterator[str]:
    landing.create(columns=COLUMNS)
    grant(tmp_path / "tokens.json", app="secret: orders")
    with served(landing, tmp_path / "tokens.json") as found:
        yield found


def test_rows_of_every_form_are_sent_and_continued_behind_their_token(landing: Landing, address: str) -> None:
    at, day, price = datetime(2026, 3, 1, 12, tzinfo=UTC), date(2026, 3, 1), Decimal("1.50")
    with ServiceClient(address, "secret") as client:
        channel = client.open_channel("c 1", "orders", on_error="continue")
        assert channel.offset_token is None
        answer = channel.insert_rows(
            [{"id": 1, "at": at, "day": day, "price": price, "raw": b"\xff"}, {"id": "x"}], "1"
        )
        assert (answer.rows, [error.row_index for error in answer.errors]) == (1, [1])
        channel.insert_rows(pa.table({"id": [2]}), "2")
        channel.insert_rows(pd.DataFrame({"id": [3]}), "3")
        channel.insert_rows(b'{"id": 4}\n', "4")
        channel.insert_row({"id": 5}, "5")
        channel.flush()
        assert channel.latest_committed_offset_token() == "5"
        channel.insert_rows([{"id": 6}], "6")
    assert landing.rows(columns="id") == [(number,) for number in range(1, 7)]
    assert landing.sql("SELECT at, day, price, hex(raw) FROM {t} WHERE id = 1")[0][1:] == (day, price, "FF")
    with ServiceClient(address, "secret") as client:
        again = client.open_channel("c 1", "orders")
        assert again.offset_token == "6"
        again.close(drop=True)
    assert landing.records() == {}


@pytest.mark.parametrize("name", ["topic/0", '"a/rows"', "/", "x/flush", "50%"])
def test_a_name_with_a_slash_is_a_channel_as_every_other(landing: Landing, address: str, name: str) -> None:
    with ServiceClient(address, "secret") as client:
        channel = client.open_channel(name, "orders")
        channel.insert_rows([{"id": 1}], "1")
        channel.flush()
        assert channel.latest_committed_offset_token() == "1"
        assert list(landing.records()) == [key_of(name)]
        channel.close(drop=True)
    assert landing.records() == {}


def test_refusals_are_errors_with_the_words_of_the_service(landing: Landing, address: str) -> None:
    with pytest.raises(IngestServiceRefused, match="does not know the writer"):
        ServiceClient(address, "wrong").open_channel("c", "orders")
    first, second = ServiceClient(address, "secret"), ServiceClient(address, "secret")
    channel = first.open_channel("c", "orders")
    with pytest.raises(RowsRefused, match="row 0, column id") as bad:
        channel.insert_rows([{"id": "x"}], "1")
    assert bad.value.facts["row_index"] == 0
    with pytest.raises(InvalidArgument, match="list of dictionaries"):
        channel.insert_rows({"id": 1}, "1")
    second.open_channel("c", "orders")
    with pytest.raises(ChannelInvalid, match=r"code 20.*app opened it"):
        channel.latest_committed_offset_token()
    with pytest.raises(IngestServiceRefused, match="STALE_CONTINUATION") as raised:
        channel.insert_rows([{"id": 1}], "1")
    assert raised.value.facts["error"] == "ContinuationTokenStale"
    second.drop_channel("c", "orders")
    with pytest.raises(ChannelInvalid, match=r"code 19.*dropped"):
        channel.latest_committed_offset_token()
    assert landing.rows() == []


def test_an_ended_channel_is_the_same_error_as_without_the_service(landing: Landing, address: str) -> None:
    channel = ServiceClient(address, "secret").open_channel("c", "orders")
    channel.insert_rows([{"id": 1}], "1")
    landing.client("other").open_channel("c", "orders")
    with pytest.raises(ChannelInvalid, match=r"code 20.*other opened it at") as raised:
        channel.flush()
    assert raised.value.facts["code"] == 20


def test_a_fenced_writer_at_one_service_is_told_and_drops_nothing_of_the_new_owner(
    landing: Landing, address: str
) -> None:
    with ServiceClient(address, "secret") as first, ServiceClient(address, "secret") as second:
        lost, quiet = first.open_channel("c", "orders"), first.open_channel("d", "orders")
        lost.insert_rows([{"id": 1}], "1")
        owner, other = second.open_channel("c", "orders"), second.open_channel("d", "orders")
        owner.insert_rows([{"id": 2}], "2")
        for call in (lost.flush, lost.flush, lambda: quiet.close(drop=True)):
            with pytest.raises(ChannelInvalid, match=r"code 20.*app opened it"):
                call()
        lost.close(drop=True)
        owner.flush()
        assert (owner.latest_committed_offset_token(), other.latest_committed_offset_token()) == ("2", None)
        lost.flush()  # it is closed
        again = first.open_channel("c", "orders")
        again.insert_rows([{"id": 3}], "3")
        with pytest.raises(ChannelInvalid, match="app opened it"):
            owner.flush()
    assert landing.rows(columns="id") == [(2,), (3,)]
    assert sorted(landing.records()) == ["C", "D"]


def test_all_bad_rows_are_counted_though_the_first_hundred_are_shown(address: str) -> None:
    with ServiceClient(address, "secret") as client:
        channel = client.open_channel("c", "orders", on_error="continue")
        answer = channel.insert_rows([{"id": "x"}] * 150 + [{"id": 1}], "151")
    assert (answer.rows, len(answer.errors), answer.error_count, answer.has_errors) == (1, 100, 150, True)


def test_the_service_judges_tokens_by_a_named_verifier(landing: Landing, address: str) -> None:
    with ServiceClient(address, "secret") as client:
        with pytest.raises(IngestServiceRefused, match="verify_tokens too"):
            client.open_channel("c", "orders", strict_tokens=True)
        channel = client.open_channel("c", "orders", verify_tokens="numeric", strict_tokens=True)
        channel.insert_rows([{"id": 9}], "9")
        with pytest.raises(TokenOutOfOrder, match="does not follow '9'"):
            channel.insert_rows([{"id": 8}], "8")
        channel.insert_rows([{"id": 10}], "10")
    assert landing.rows(columns="id") == [(10,), (9,)]


def test_a_service_that_is_away_is_an_error_with_what_to_do() -> None:
    with pytest.raises(IngestUnavailable, match="does not answer"):
        ServiceClient("http://127.0.0.1:1", "secret").open_channel("c", "orders")
