"""Bad rows of a channel in their quarantine table: each once, whatever happens between the two commits."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from tests.engine.channels.landing import Landing
from tidemark.channels.driver.json_rows import JsonLines
from tidemark.channels.driver.limits import Limits
from tidemark.channels.planning.quarantine import QUARANTINE_COLUMNS
from tidemark.errors import ChannelInvalid, InvalidArgument

pytestmark = pytest.mark.spark

COLUMNS = "channel_name, end_offset_token, place, error_kind, row"
IMPATIENT = Limits(patience=timedelta(seconds=10))


def test_bad_rows_of_every_form_are_kept_with_what_is_wrong(landing: Landing) -> None:
    landing.create()
    with landing.client() as client:
        channel = client.open_channel("c", "orders", on_error="continue", quarantine="bad")
        channel.insert_rows([{"id": 1}, {"id": "x", "name": "ü"}], "1")
        channel.insert_rows(JsonLines([b'{"id": 2}\n', b"{half\n"], "a.jsonl:{}".format), "2")
        channel.flush()
        channel.insert_rows(pa.table({"id": [3], "more": [1]}), "3")
    assert landing.rows(columns="id") == [(1,), (2,)]
    assert landing.rows("bad", COLUMNS) == [
        ("C", "1", "row 1", "invalid_value", json.dumps({"id": "x", "name": "ü"}, ensure_ascii=False)),
        ("C", "2", "a.jsonl:1", "unreadable", "{half"),
        ("C", "3", "row 0", "extra_column", '{"id": 3, "more": 1}'),
    ]
    assert landing.rows("bad", "table_name, error_message")[0] == ("orders", "'x' (str) is not a number")


def test_bad_rows_that_a_dead_writer_left_are_added_by_whoever_comes_next(landing: Landing, tmp_path: Path) -> None:
    landing.create()
    away = tmp_path / "away"
    for number, successor in enumerate(("open", "keep", "the same")):
        client = landing.client(limits=IMPATIENT)
        channel = client.open_channel("c", "orders", on_error="continue", quarantine="bad")
        channel.insert_rows([{"id": "x"}], f"{number}a")
        channel.flush()
        (landing.root / "bad" / "_delta_log").rename(away)  # files are taken, and no commit
        channel.insert_rows([{"id": number}, {"id": "y"}], f"{number}b")
        channel.flush()
        assert landing.token("C") == f"{number}b"
        away.rename(landing.root / "bad" / "_delta_log")
        assert landing.rows("bad", "count(*)") == [(2 * number + 1,)]
        if successor == "the same":
            channel.insert_rows([], "end")
            client.close()
        else:
            client.discard()
            with landing.client("next") as following:
                if successor == "open":
                    following.open_channel("c", "orders")
                else:
                    following.complete_quarantines("orders")
                following.complete_quarantines("orders")
        assert landing.rows("bad", "count(*), count(DISTINCT end_offset_token)") == [(2 * number + 2, 2 * number + 2)]
    assert landing.rows(columns="id") == [(0,), (1,), (2,)]


def test_a_channel_that_is_dropped_leaves_its_bad_rows(landing: Landing, tmp_path: Path) -> None:
    landing.create()
    client = landing.client(limits=IMPATIENT)
    channel = client.open_channel("c", "orders", on_error="continue", quarantine="bad")
    (landing.root / "bad" / "_delta_log").rename(tmp_path / "away")
    channel.insert_rows([{"id": "x"}], "1")
    channel.flush()
    (tmp_path / "away").rename(landing.root / "bad" / "_delta_log")
    channel.close(drop=True)
    assert landing.rows("bad", "row") == [('{"id": "x"}',)]
    again = client.open_channel("c", "orders", on_error="continue", quarantine="bad")
    again.insert_rows([{"id": "x"}], "1")
    again.flush()
    assert landing.rows("bad", "count(*)") == [(2,)]


def test_a_restored_table_gets_its_bad_rows_again_once(landing: Landing) -> None:
    landing.create()
    with landing.client() as client:
        channel = client.open_channel("c", "orders", on_error="continue", quarantine="bad")
        for token in ("1", "2"):
            channel.insert_rows([{"id": int(token)}, {"id": "x"}], token)
            channel.flush()
    landing.sql(f"RESTORE {{t}} TO VERSION AS OF {landing.log().head() - 1}")
    with landing.client() as client:
        channel = client.open_channel("c", "orders", on_error="continue", quarantine="bad")
        assert channel.offset_token == "1"
        channel.insert_rows([{"id": 2}, {"id": "x"}], "2")
    assert landing.rows(columns="id") == [(1,), (2,)]
    assert landing.rows("bad", "end_offset_token") == [("1",), ("2",), ("2",)]


def bad_tokens(landing: Landing) -> list[str]:
    """The tokens of the bad rows in quarantine, in order."""
    return [token for (token,) in landing.rows("bad", "end_offset_token")]


def write_bad(landing: Landing, table: str, *tokens: str) -> None:
    """A commit with a bad row for each token."""
    with landing.client() as client:
        channel = client.open_channel("c", table, on_error="continue", quarantine="bad")
        for token in tokens:
            channel.insert_rows([{"id": f"bad {token}"}], token)
            channel.flush()


def test_copies_of_a_table_share_its_quarantine_and_each_bad_row_is_there_once(landing: Landing) -> None:
    landing.create()
    log = landing.root / "bad" / "_delta_log"
    client = landing.client(limits=IMPATIENT)
    channel = client.open_channel("c", "orders", on_error="continue", quarantine="bad")
    log.rename(landing.root / "away")
    channel.insert_rows([{"id": "x"}], "both have it")  # its record waits for the quarantine
    channel.flush()
    client.discard()
    (landing.root / "away").rename(log)
    shutil.copytree(landing.root / "orders", landing.root / "copy")
    landing.sql(f"CREATE TABLE delta.`{landing.root / 'clone'}` SHALLOW CLONE {{t}}")
    tables = ("copy", "orders", "clone")
    with ThreadPoolExecutor(len(tables)) as pool:
        list(pool.map(lambda table: write_bad(landing, table, f"{table} a", f"{table} b"), tables))
    expected = ["both have it", *(f"{table} {letter}" for table in tables for letter in "ab")]
    assert bad_tokens(landing) == sorted(expected)


def test_a_directory_that_was_put_back_from_a_copy_loses_no_bad_row(landing: Landing) -> None:
    landing.create()
    write_bad(landing, "orders", "1")
    shutil.copytree(landing.root / "orders", landing.root / "copy")
    write_bad(landing, "orders", "2", "3", "4")
    shutil.rmtree(landing.root / "orders")
    (landing.root / "copy").rename(landing.root / "orders")
    assert landing.token("C") == "1"
    write_bad(landing, "orders", "again 2", "again 3")
    write_bad(landing, "orders", "again 4")
    assert bad_tokens(landing) == ["1", "2", "3", "4", "again 2", "again 3", "again 4"]


def test_a_quarantine_needs_rows_that_go_on_without_the_bad_ones(landing: Landing) -> None:
    landing.create()
    landing.create("other")
    client = landing.client()
    with pytest.raises(InvalidArgument, match="on_error"):
        client.open_channel("c", "orders", quarantine="bad")
    assert not (landing.root / "bad").exists()
    assert landing.records() == {}
    with pytest.raises(InvalidArgument, match="lacks the columns"):
        client.open_channel("c", "orders", on_error="continue", quarantine="other")


KEPT = ", ".join(f"{name} {kind.upper()}" for name, kind in QUARANTINE_COLUMNS.items())


@pytest.mark.parametrize(
    ("columns", "tail", "settings", "problem"),
    [
        (KEPT, "PARTITIONED BY (channel_name)", {}, "it has partitions"),
        (KEPT.replace("place STRING", "place VARCHAR(3)"), "", {}, "place is not of type string"),
        (f"{KEPT}, reviewer STRING NOT NULL", "", {}, "reviewer needs a value"),
        (KEPT, "", {"delta__setTransactionRetentionDuration": "interval 1 day"}, "it has the property"),
        (f"{KEPT}, reviewer STRING", "", {}, None),
    ],
)
def test_a_table_that_would_lose_bad_rows_is_no_quarantine(
    landing: Landing, columns: str, tail: str, settings: dict[str, str], problem: str | None
) -> None:
    landing.create()
    landing.create("mine", columns=columns, tail=tail, **settings)
    with landing.client() as client:
        if problem is not None:
            with pytest.raises(InvalidArgument, match=problem):
                client.open_channel("c", "orders", on_error="continue", quarantine="mine")
            return
        client.open_channel("c", "orders", on_error="continue", quarantine="mine").insert_rows([{"id": "x"}], "1")
    assert landing.rows("mine", "row, reviewer") == [('{"id": "x"}', None)]


def test_odd_and_long_rows_are_kept_too(landing: Landing) -> None:
    landing.create()
    with landing.client() as client:
        channel = client.open_channel("c", "orders", on_error="continue", quarantine="bad")
        channel.insert_rows([{"id": 1, "\ud800": 1}, {"id": 2, "name": "x" * (17 << 20)}, {"id": "\ud801"}], "1")
        channel.insert_rows(({"id": number} for number in ("x", 4)), "2")
        channel.flush()
        assert client.open_channel("c", "orders").offset_token == "2"
    assert landing.rows(columns="id") == [(4,)]
    found = landing.rows("bad", "place, error_kind, length(row) > 1000000")
    assert found == [
        ("row 0", "extra_column", False), ("row 0", "invalid_value", False), ("row 1", "too_large", True),
        ("row 2", "invalid_value", False),
    ]  # fmt: skip


def test_a_quarantine_that_is_gone_ends_its_channel_alone(landing: Landing) -> None:
    landing.create()
    client = landing.client(limits=IMPATIENT)
    bad, good = (
        client.open_channel(name, "orders", on_error="continue", **how)
        for name, how in (("bad", {"quarantine": "bins"}), ("good", {}))
    )
    log = landing.root / "bins" / "_delta_log"
    log.rename(landing.root / "away")
    bad.insert_rows([{"id": "x"}], "1")
    bad.flush()
    bad.insert_rows([{"id": 1}], "2")
    good.insert_rows([{"id": 2}], "1")
    good.flush()
    with pytest.raises(ChannelInvalid, match="Restore it, or open"):
        bad.flush()
    client.drop_channel("good", "orders")
    (landing.root / "away").rename(log)
    again = client.open_channel("bad", "orders", on_error="continue", quarantine="bins")
    assert again.offset_token == "1"
    again.insert_rows([{"id": 1}], "2")
    again.flush()
    assert landing.rows(columns="id") == [(1,), (2,)]
    assert landing.rows("bins", "row") == [('{"id": "x"}',)]
