"""Sources of rows: from the same token on the same rows come again, and what cannot be read has an error of its own."""

from __future__ import annotations

import json
import sqlite3
import threading
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.unit.channels.specs import field, spec
from tidemark.channels.driver.batches import batch_of
from tidemark.channels.driver.sources.http_pages import http_pages
from tidemark.channels.driver.sources.lines import lines
from tidemark.channels.driver.sources.sql_query import sql_query
from tidemark.channels.planning.sources import OWN_SOURCES, require_source_options
from tidemark.errors import InvalidArgument, SourceUnreadable
from tidemark.model.source_connection import SourceConnection

QUERY = "SELECT id, at, name FROM sold WHERE id > :after ORDER BY id"


@pytest.fixture
def shop(tmp_path: Path) -> SourceConnection:
    """A database with seven rows."""
    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.execute("CREATE TABLE sold (id INTEGER, at TEXT, name TEXT)")
        rows = [(n, f"2026-01-0{n}", "it's") for n in range(1, 8)]
        database.executemany("INSERT INTO sold VALUES (?, ?, ?)", rows)
    return SourceConnection("shop", "sqlite", sqlalchemy_url=f"sqlite:///{tmp_path}/shop.db")


def read(source: Any, token: str | None, **options: Any) -> list[tuple[Any, str]]:
    return list(source(token, **options))


def test_a_query_gives_each_row_behind_its_key_once_whatever_the_size_of_batches(shop: SourceConnection) -> None:
    how = {"connection": shop, "query": QUERY, "key": "id", "initial": 0}
    found = read(sql_query, None, **how, rows_per_batch=3)
    assert [([row["id"] for row in rows], token) for rows, token in found] == [
        ([1, 2, 3], "3"), ([4, 5, 6], "6"), ([7], "7")
    ]  # fmt: skip
    assert read(sql_query, "3", **how, rows_per_batch="3") == found[1:]
    assert read(sql_query, "7", **how) == []


@pytest.mark.parametrize(
    ("query", "token", "expected"),
    [
        ("SELECT name, at FROM sold WHERE at > :after ORDER BY at", '"2026-01-05"', ['"2026-01-07"']),
        ("SELECT id + 0.5 AS at FROM sold WHERE id + 0.5 > :after ORDER BY id", "6.5", ["7.5"]),
    ],
)
def test_keys_are_numbers_or_texts(shop: SourceConnection, query: str, token: str, expected: list[str]) -> None:
    found = read(sql_query, token, connection=shop, query=query, key="at", initial="")
    assert [token for _, token in found] == expected


@pytest.mark.parametrize(
    ("query", "key", "error"),
    [
        (QUERY.replace("ORDER BY id", "ORDER BY id DESC"), "id", "follows one with 7"),
        (QUERY.replace("SELECT id", "SELECT 5 AS id"), "id", "follows one with 5"),
        (QUERY.replace("SELECT id", "SELECT NULL AS id"), "id", "no value of the key id"),
        (QUERY.replace("sold", "slod"), "id", "no such table: slod"),
        (QUERY.replace("SELECT id", "SELECT x'00ff' AS id"), "id", "is of type bytes"),
    ],
)
def test_a_query_that_would_lose_rows_ends_with_an_error(
    shop: SourceConnection, query: str, key: str, error: str
) -> None:
    with pytest.raises(SourceUnreadable, match=error):
        read(sql_query, None, connection=shop, query=query, key=key, initial=0)


def test_a_wrong_key_token_or_query_is_named(shop: SourceConnection) -> None:
    how = {"connection": shop, "query": QUERY, "key": "id", "initial": 0}
    for token, more, error in (
        (None, {"key": "number"}, "but id, at, name"),
        ("{}", {}, "the key of the last row"),
        ("yesterday", {}, "the key of the last row"),
        (None, {"query": "SELECT id FROM sold"}, "must have :after"),
    ):
        with pytest.raises(InvalidArgument, match=error):
            read(sql_query, token, **{**how, **more})


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "true", "null", "[1]", ""])
def test_a_token_that_no_row_can_follow_is_refused(shop: SourceConnection, token: str) -> None:
    with pytest.raises(InvalidArgument, match="offset_token"):
        read(sql_query, token, connection=shop, query=QUERY, key="id", initial=0)


@pytest.mark.parametrize("token", ["9" * 30, '"\\ud800"'])
def test_a_token_that_a_client_cannot_send_is_an_error_of_the_source(shop: SourceConnection, token: str) -> None:
    with pytest.raises(SourceUnreadable):
        read(sql_query, token, connection=shop, query=QUERY, key="id", initial=0)


def test_two_columns_of_one_name_are_an_error(shop: SourceConnection) -> None:
    """Rows by name would have the value of one of them, as of a join."""
    query = "SELECT a.id, b.id FROM (SELECT 1 AS id) a, (SELECT 2 AS id) b WHERE a.id > :after"
    with pytest.raises(SourceUnreadable, match="two columns of the name id: give one of them another name by AS"):
        read(sql_query, None, connection=shop, query=query, key="id", initial=0)


def test_a_database_that_is_away_is_an_error_without_its_password() -> None:
    url = "postgresql+psycopg://ana:c4n4ry@127.0.0.1:1/shop"
    with pytest.raises(SourceUnreadable) as raised:
        read(
            sql_query,
            None,
            connection=SourceConnection("shop", "p", sqlalchemy_url=url),
            query=QUERY,
            key="id",
            initial=0,
        )
    assert "c4n4ry" not in str(raised.value)


class _Api(BaseHTTPRequestHandler):
    """Five rows in pages of two. The last page has no next cursor. Each first request of a page is refused as busy."""

    rows: list[dict[str, Any]] = []  # noqa: RUF012 - a test changes it
    said: bytes | None = None  # in place of a page
    following: dict[int, int] = {}  # noqa: RUF012 - first row of a page → that of the next one
    busy: set[str] = set()  # noqa: RUF012
    seen: list[dict[str, str | None]] = []  # noqa: RUF012

    def do_GET(self) -> None:
        asked = parse_qs(urlsplit(self.path).query)
        at = int(asked.get("after", ["0"])[0])
        type(self).seen.append({"auth": self.headers["Authorization"], "key": self.headers["X-Key"]})
        if self.path not in self.busy:
            type(self).busy.add(self.path)
            self.send_response(503)
            self.send_header("Retry-After", "0")
            self.end_headers()
            return
        after = self.following.get(at, at + 2)
        following = str(after) if after < len(self.rows) else None
        page = {"data": {"items": self.rows[at : at + 2]}, "page": {"next": following}}
        body = type(self).said or json.dumps(page).encode()
        self.send_response(404 if asked.get("lost") else 200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def api() -> Iterator[SourceConnection]:
    _Api.rows = [{"id": n, "price": 0.1} for n in range(5)]
    _Api.busy, _Api.seen, _Api.said, _Api.following = set(), [], None, {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Api)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield SourceConnection("api", "http", "127.0.0.1", server.server_port, "ana", "pw", extra={"X-Key": "k"})
    server.shutdown()
    server.server_close()


PAGES = {"url": "/sold", "rows": "data.items", "next_cursor": "page.next", "cursor_parameter": "after"}


def test_pages_come_once_each_also_the_last_one_that_grows(api: SourceConnection) -> None:
    found = read(http_pages, None, connection=api, **PAGES)
    assert [[row["id"] for row in rows] for rows, _ in found] == [[0, 1], [2, 3], [4]]
    assert found[0][0][0]["price"] == Decimal("0.1")
    assert _Api.seen[0] == {"auth": "Basic YW5hOnB3", "key": "k"}
    last = found[-1][1]
    assert json.loads(last) == {"cursor": "4", "rows": 1}
    assert read(http_pages, last, connection=api, **PAGES) == []
    _Api.rows.extend({"id": n} for n in (5, 6))
    assert [[row["id"] for row in rows] for rows, _ in read(http_pages, last, connection=api, **PAGES)] == [[5], [6]]
    assert read(http_pages, found[0][1], connection=api, **PAGES)[0][0] == found[1][0]


def test_a_token_may_be_a_cursor_alone(api: SourceConnection) -> None:
    for token in ("2", "4"):
        assert read(http_pages, token, connection=api, **PAGES)[0][0][0]["id"] == int(token)


def test_an_api_that_refuses_or_answers_something_else_is_an_error(api: SourceConnection) -> None:
    for more, error in (
        ({"parameters": {"lost": 1}}, "404"),
        ({"rows": "data.item"}, "no list of rows 'data.item'"),
        ({"url": "http://127.0.0.1:1/"}, "refused"),
    ):
        with pytest.raises(SourceUnreadable, match=error):
            read(http_pages, None, connection=api, **{**PAGES, **more})
    with pytest.raises(InvalidArgument, match="must be a cursor"):
        read(http_pages, '{"page": 1}', connection=api, **PAGES)


@pytest.mark.parametrize(
    ("said", "error"),
    [(b"[" * 100_000, "nested too deeply"), (b'{"n": 1e99999999999999999999}', "beyond all bounds")],
)
def test_a_page_that_cannot_be_read_is_an_error(api: SourceConnection, said: bytes, error: str) -> None:
    _Api.said = said
    with pytest.raises(SourceUnreadable, match=error):
        read(http_pages, None, connection=api, **PAGES)


@pytest.mark.parametrize(("lost", "error"), [("1", "it answers 404"), ("", "no list of rows")])
def test_errors_of_an_api_show_its_url_without_what_may_be_secret(
    api: SourceConnection, lost: str, error: str, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "c4n4ry"
    url = f"http://ana:{secret}@127.0.0.1:{api.port}/sold?lost={lost}&api_key={secret}"
    with pytest.raises(SourceUnreadable, match=error) as raised:
        read(http_pages, None, **{**PAGES, "url": url, "rows": "none", "parameters": {"token": secret}})
    assert raised.value.facts["source"] == f"http://127.0.0.1:{api.port}/sold"
    assert secret not in "".join(traceback.format_exception(raised.value)) + caplog.text


def test_the_query_of_a_url_is_sent_with_each_page(api: SourceConnection) -> None:
    found = read(http_pages, "2", connection=api, **{**PAGES, "url": "/sold?lost="})
    assert [[row["id"] for row in rows] for rows, _ in found] == [[2, 3], [4]]
    with pytest.raises(SourceUnreadable, match="404"):
        read(http_pages, "2", connection=api, **{**PAGES, "url": "/sold?lost=1"})


@pytest.mark.parametrize("end", [None, "", False])
def test_a_page_whose_next_cursor_says_nothing_is_the_last_one(api: SourceConnection, end: Any) -> None:
    _Api.said = json.dumps({"data": {"items": [{"id": 1}]}, "page": {"next": end}}).encode()
    assert read(http_pages, None, connection=api, **PAGES) == [([{"id": 1}], '{"cursor": null, "rows": 1}')]


def test_cursors_that_go_round_in_a_circle_are_an_error(api: SourceConnection) -> None:
    _Api.following = {4: 2}
    pages = http_pages(None, connection=api, **PAGES)
    assert [next(pages)[1] for _ in range(2)] == ['{"cursor": "2", "rows": 0}', '{"cursor": "4", "rows": 0}']
    with pytest.raises(SourceUnreadable, match=r"page at cursor '4' leads back to '2'"):
        next(pages)


@pytest.mark.parametrize("odd", [True, ["a"], {"a": 1}])
def test_a_next_cursor_that_is_neither_a_text_nor_a_number_is_an_error(api: SourceConnection, odd: Any) -> None:
    _Api.said = json.dumps({"data": {"items": []}, "page": {"next": odd}}).encode()
    with pytest.raises(SourceUnreadable, match="the next cursor of a page"):
        read(http_pages, None, connection=api, **PAGES)


@pytest.mark.parametrize("form", ["json", "text"])
def test_a_last_line_without_a_newline_counts_once_a_later_file_is_there(tmp_path: Path, form: str) -> None:
    """Exported files often end so. The last file may still be written."""
    (tmp_path / "a.log").write_bytes(b'{"id": 1}\n{"id": 2}')
    found = read(lines, None, directory=str(tmp_path), form=form)
    assert [token for _, token in found] == ["a.log:1"]
    (tmp_path / "b.log").write_bytes(b'{"id": 3}\n{"id"')
    found = read(lines, "a.log:1", directory=str(tmp_path), form=form)
    assert [token for _, token in found] == ["a.log:2", "b.log:1"]
    assert [token for _, token in read(lines, "a.log:2", directory=str(tmp_path), form=form)] == ["b.log:1"]
    if form == "json":
        batches = [batch_of(rows, spec(field("id", "long")), UTC, datetime.now(UTC)) for rows, _ in found]
        assert [batch.rows.to_pylist() for batch in batches] == [[{"id": 2}], [{"id": 3}]]


@pytest.mark.parametrize(
    "token",
    ['{"cursor": "2", "rows": -1}', '{"cursor": "2", "rows": true}', '{"cursor": ["2"], "rows": 0}', '{"cursor": "2"}'],
)
def test_a_token_that_is_no_place_in_a_page_is_refused(api: SourceConnection, token: str) -> None:
    with pytest.raises(InvalidArgument, match="offset_token"):
        read(http_pages, token, connection=api, **PAGES)


@pytest.mark.parametrize("number", ["9" * 5_000, "9" * 19, "٣", "-1", ""])
def test_a_token_that_is_no_line_is_refused(tmp_path: Path, number: str) -> None:
    (tmp_path / "a.log").write_bytes(b"{}\n")
    with pytest.raises(InvalidArgument, match="it must be file:line"):
        read(lines, f"a.log:{number}", directory=str(tmp_path))


def test_a_file_that_was_cut_is_an_error_and_not_lines_that_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_bytes(b'{"id": 1}\n{"id": 2}\n')
    assert read(lines, "a.log:2", directory=str(tmp_path)) == []
    file.write_bytes(b'{"id": 3}\n')
    with pytest.raises(InvalidArgument, match=r"a\.log has 1 lines, so it was cut"):
        read(lines, "a.log:2", directory=str(tmp_path))


def test_an_element_of_a_page_that_is_no_object_is_a_row_error_with_its_place(api: SourceConnection) -> None:
    _Api.rows[3:] = [None, {"id": 4, "price": "\ud800"}]
    (_, (rows, token), (last, _)) = read(http_pages, None, connection=api, **PAGES)
    batch = batch_of(rows, spec(field("id", "long"), field("price", "string")), UTC, datetime.now(UTC))
    assert batch.rows.to_pylist() == [{"id": 2, "price": "0.1"}]
    assert [batch.said_of(error) for error in batch.errors] == [
        "element 1 of the page at cursor '2': it is not a JSON object, but NoneType"
    ]
    assert json.loads(token)["cursor"] == "4"
    assert last == [{"id": 4, "price": "\ud800"}]


def test_a_line_that_is_no_object_is_a_row_error_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"id": 1}\n\n{"id": \n[3]\n{"id": "x"}\n{"id": 5}\n')
    ((rows, token),) = read(lines, None, directory=str(tmp_path))
    batch = batch_of(rows, spec(field("id", "long", nullable=False)), UTC, datetime(2026, 1, 1, tzinfo=UTC))
    assert (batch.rows.column("id").to_pylist(), batch.parsed, token) == ([1, 5], 5, "a.jsonl:6")
    said = [batch.said_of(error) for error in batch.errors]
    assert [one.partition(": ")[0] for one in said] == ["a.jsonl:3", "a.jsonl:4", "a.jsonl:5"]
    assert ["not a JSON object" in one for one in said] == [True, True, False]


@pytest.mark.parametrize("source", OWN_SOURCES)
def test_options_of_a_source_are_checked_by_name(source: str) -> None:
    needed = dict.fromkeys(OWN_SOURCES[source].required, "x")
    require_source_options(source, needed)
    with pytest.raises(InvalidArgument, match="no option tpoic"):
        require_source_options(source, {**needed, "tpoic": "x"})
    with pytest.raises(InvalidArgument, match="needs"):
        require_source_options(source, {})
    require_source_options("module:function", {"anything": 1})
