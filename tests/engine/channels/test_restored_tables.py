"""Tokens belong to rows: a table that was restored, recreated or copied answers its own tokens or none."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.engine.channels.landing import Landing
from tests.until import wait_until
from tidemark.channels.model.channels import StatusCode
from tidemark.channels.worker.tables import channels_of
from tidemark.errors import ChannelInvalid, ChannelTokenLost

pytestmark = pytest.mark.spark


def filled(landing: Landing, *tokens: int) -> dict[int, int]:
    """A table with a row for each token, written through channel C. Token → version with its row."""
    landing.create()
    versions = {}
    with landing.client() as client:
        channel = client.open_channel("c", "orders")
        for token in tokens:
            channel.insert_rows([{"id": token}], str(token))
            channel.flush()
            versions[token] = landing.log().head()
    return versions


def restore(landing: Landing, version: int) -> int:
    landing.sql(f"RESTORE {{t}} TO VERSION AS OF {version}")
    return landing.log().head()


def test_a_restore_between_two_writers_takes_the_token_back(landing: Landing) -> None:
    versions = filled(landing, 1, 2, 3)
    restore(landing, versions[2])
    with landing.client() as client:
        channel = client.open_channel("c", "orders")
        assert channel.offset_token == "2"
        channel.insert_rows([{"id": 3}], "3")
    assert landing.rows(columns="id") == [(1,), (2,), (3,)]


def test_a_restore_under_an_open_channel_ends_it_before_another_row(landing: Landing) -> None:
    versions = filled(landing, 1, 2)
    with landing.client() as client:
        channels = [client.open_channel(name, "orders") for name in ("c", "other")]
        at = restore(landing, versions[1])
        for channel in channels:
            channel.insert_rows([{"id": 9}], "9")
        with pytest.raises(
            ChannelInvalid, match=rf"code 36.*version {at} restored the table to version {versions[1]}"
        ) as raised:
            channels[0].flush()
        assert raised.value.facts["offset_token"] == "1"
        with pytest.raises(ChannelInvalid, match="code 36"):
            channels[1].flush()
        assert landing.rows(columns="id") == [(1,)]
        again = client.open_channel("c", "orders")
        assert again.offset_token == "1"
        assert client.open_channel("other", "orders").offset_token is None
        again.insert_rows([{"id": 2}], "2")
    assert landing.rows(columns="id") == [(1,), (2,)]


def test_readers_of_tokens_see_a_restore_before_any_committer(landing: Landing) -> None:
    versions = filled(landing, 1, 2)
    with landing.client() as client:
        channel = client.open_channel("c", "orders")
        at = restore(landing, versions[1])
        landing.sql("INSERT INTO {t} VALUES (7, 'x')")
        assert landing.token("C") == "2"  # in the log
        shown = channels_of(landing.log(), "orders")["C"]
        problem = f"version {at} restored the table to version {versions[1]}."
        assert (shown.offset_token, shown.problem) == ("1", problem)
        with pytest.raises(ChannelInvalid, match="code 36") as raised:
            channel.latest_committed_offset_token()
        assert raised.value.facts["offset_token"] == "1"
        again = client.open_channel("c", "orders")
        assert (again.offset_token, again.latest_committed_offset_token()) == ("1", "1")
        assert channels_of(landing.log(), "orders")["C"].problem is None


def test_readers_of_tokens_see_a_replaced_table_at_once(landing: Landing) -> None:
    filled(landing, 1)
    with landing.client() as client:
        channel = client.open_channel("c", "orders")
        how = f"USING delta TBLPROPERTIES ('delta.enableRowTracking' = 'true') LOCATION '{landing.root}/orders'"
        for statement in (
            f"CREATE TABLE replaced_orders USING delta LOCATION '{landing.root}/orders'",
            f"CREATE OR REPLACE TABLE replaced_orders (id BIGINT) {how}",
            "DROP TABLE replaced_orders",
        ):
            landing.sql(statement)
        assert channels_of(landing.log(), "orders") == {}
        with pytest.raises(ChannelInvalid, match=r"code 19.*recreated"):
            channel.latest_committed_offset_token()


def test_several_restores_lead_to_the_token_of_the_rows_that_are_there(landing: Landing) -> None:
    versions = filled(landing, 1, 2, 3)
    just_restored = restore(landing, versions[1])  # nobody sets the tokens back here
    with landing.client() as client:
        channel = client.open_channel("c", "orders")
        assert channel.offset_token == "1"
        channel.insert_rows([{"id": 2}], "2b")
    restore(landing, just_restored)  # its rows are those of token 1, its domains those of token 3
    with landing.client() as client:
        assert client.open_channel("c", "orders").offset_token == "1"
    restore(landing, versions[3])
    with landing.client() as client:
        assert client.open_channel("c", "orders").offset_token == "3"


def test_two_clients_that_see_a_restore_set_the_tokens_back_once(landing: Landing) -> None:
    versions = filled(landing, 1, 2)
    clients = [landing.client(f"client {number}") for number in range(2)]
    channels = [client.open_channel(f"d{number}", "orders") for number, client in enumerate(clients)]
    restore(landing, versions[1])
    for number, channel in enumerate(channels):
        channel.insert_rows([{"id": 9}], "9")
        with pytest.raises(ChannelInvalid, match="code 36"):
            channel.flush()
        again = clients[number].open_channel(f"d{number}", "orders")
        again.insert_rows([{"id": 10 + number}], "10")
        again.flush()
    assert clients[0].open_channel("c", "orders").offset_token == "1"
    assert landing.rows(columns="id") == [(1,), (10,), (11,)]


def test_a_token_that_nobody_can_tell_is_refused_until_it_is_set(landing: Landing) -> None:
    filled(landing, 1, 2)
    at = landing.log().timestamp(landing.log().head() - 1)
    landing.sql(f"RESTORE {{t}} TO TIMESTAMP AS OF '{at:%Y-%m-%d %H:%M:%S.%f}+00:00'")
    client = landing.client()
    with pytest.raises(ChannelTokenLost, match="restored the table to an earlier version") as raised:
        client.open_channel("c", "orders")
    assert raised.value.facts["offset_token"] == "2"
    client.set_offset_token("c", "orders", "1")
    assert client.open_channel("c", "orders").offset_token == "1"


def remove(path: Path) -> None:
    """Checksums of the last commits may be on their way."""
    wait_until(lambda: shutil.rmtree(path, ignore_errors=True) or not path.exists())


def test_a_recreated_table_has_no_token(landing: Landing) -> None:
    filled(landing, 1, 2)
    with landing.client() as client:
        channel = client.open_channel("c", "orders")
        path = landing.root / "orders"
        remove(path)
        landing.create()
        channel.insert_rows([{"id": 3}], "3")
        with pytest.raises(ChannelInvalid, match=r"code 19.*recreated"):
            channel.flush()
        again = client.open_channel("c", "orders")
        assert again.offset_token is None
        again.insert_rows([{"id": 1}], "1")
        again.flush()
        assert landing.rows(columns="id") == [(1,)]
        remove(path)
        again.insert_rows([{"id": 2}], "2")
        with pytest.raises(ChannelInvalid, match="No table exists"):
            again.flush()
        assert again.status().code is StatusCode.MUST_REOPEN
        assert not path.exists()


def test_a_clone_has_no_tokens_and_a_copied_directory_its_own(landing: Landing) -> None:
    filled(landing, 1, 2)
    landing.sql(f"CREATE TABLE delta.`{landing.root / 'clone'}` SHALLOW CLONE {{t}}")
    shutil.copytree(landing.root / "orders", landing.root / "copy")
    with landing.client() as client:
        client.open_channel("c", "orders").insert_rows([{"id": 3}], "3")
    with landing.client() as client:
        assert client.open_channel("c", "copy").offset_token == "2"
        channel = client.open_channel("c", "clone")
        assert channel.offset_token is None
        channel.insert_rows([{"id": 9}], "9")
    assert landing.rows("clone", "id") == [(1,), (2,), (9,)]
    assert [landing.token("C", table) for table in ("orders", "copy", "clone")] == ["3", "2", "9"]


def test_tokens_outlive_what_keeps_or_removes_rows_on_purpose(landing: Landing) -> None:
    filled(landing, 1, 2)
    for statement in ("DELETE FROM {t}", "OPTIMIZE {t}", "INSERT OVERWRITE {t} VALUES (7, 'x')", "VACUUM {t}"):
        landing.sql(statement)
        with landing.client() as client:
            assert client.open_channel("c", "orders").offset_token == "2", statement
    assert landing.rows(columns="id") == [(7,)]
