"""The ingest service over HTTP: rows of writers in any language, each with its own token."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
import zstandard

from tests.engine.channels.landing import Landing
from tests.engine.channels.served import Writer, grant, served

pytestmark = pytest.mark.spark


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    file = tmp_path / "tokens.json"
    grant(file, app="secret: orders", other="foreign: db.*")
    return file


@pytest.fixture
def address(landing: Landing, tokens: Path) -> Iterator[str]:
    landing.create()
    with served(landing, tokens) as found:
        yield found


@pytest.fixture
def writer(address: str) -> Iterator[Writer]:
    with httpx.Client(base_url=address, headers={"Authorization": "Bearer secret"}, timeout=60) as http:
        yield Writer(http)


@pytest.mark.quick
def test_rows_are_appended_in_turn_and_committed_with_their_token(landing: Landing, writer: Writer) -> None:
    opened = writer.open("c")
    assert opened["channel_status"]["last_committed_offset_token"] is None
    first = writer.append("c", opened["next_continuation_token"], [{"id": 1}, {"id": 2}], "2")
    assert (first.status_code, first.json()["rows"]) == (200, 2)
    again = writer.append("c", opened["next_continuation_token"], [{"id": 1}, {"id": 2}], "2")  # its answer was lost
    assert again.status_code == 400
    assert "STALE_CONTINUATION_TOKEN_SEQUENCER" in again.json()["message"]
    second = writer.append("c", first.json()["next_continuation_token"], [{"id": 3}], "3")
    assert second.status_code == 200
    (known,) = writer.status("c", "nobody").values()
    assert (known["last_committed_offset_token"], known["buffered_rows"]) == (None, 3)
    assert writer.flush("c").json()["last_committed_offset_token"] == "3"
    assert landing.rows(columns="id") == [(1,), (2,), (3,)]
    assert landing.records()["C"].opened_by == "app"


def test_a_second_writer_of_a_channel_makes_the_first_ones_tokens_stale(writer: Writer, landing: Landing) -> None:
    first = writer.open("c")
    writer.append("c", first["next_continuation_token"], [{"id": 1}], "1")
    refused = writer.http.put("/v1/tables/orders/channels/c", json={"fail_on_uncommitted_rows": True})
    assert (refused.status_code, refused.json()["error"]) == (409, "ChannelHasUncommittedRows")
    second = writer.open("C")
    stale = writer.append("c", first["next_continuation_token"], [{"id": 2}], "2")
    assert stale.status_code == 400
    taken = writer.append("c", second["next_continuation_token"], [{"id": 3}], "3")
    assert taken.status_code == 200
    writer.flush("c")
    assert landing.rows(columns="id") == [(3,)]


@pytest.mark.parametrize("form", ["json", "gzip", "zstd", "arrow", "arrow zstd"])
def test_bodies_are_json_lines_or_arrow_perhaps_compressed(landing: Landing, writer: Writer, form: str) -> None:
    headers = {}
    body = b'{"id": 1, "name": "a"}\n{"ID": "2"}\n'
    if form.startswith("arrow"):
        table = pa.table({"id": [1, 2], "name": ["a", None]})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as out:
            out.write_table(table)
        body = sink.getvalue().to_pybytes()
        headers["Content-Type"] = "application/vnd.apache.arrow.stream"
    if form.endswith("zstd"):
        body, headers["Content-Encoding"] = zstandard.compress(body), "zstd"
    if form == "gzip":
        body, headers["Content-Encoding"] = gzip.compress(body), "gzip"
    opened = writer.open("c")
    answer = writer.append("c", opened["next_continuation_token"], body, "2", headers=headers)
    assert answer.status_code == 200, answer.text
    writer.flush("c")
    assert landing.rows() == [(1, "a"), (2, None)]


BOMB = zstandard.compress(b"\n" * (2 << 20))


@pytest.mark.parametrize(
    ("body", "headers", "status", "error"),
    [
        (b"{", {}, 400, "BodyUnreadable"),
        (b"no arrow", {"Content-Type": "application/vnd.apache.arrow.stream"}, 400, "BodyUnreadable"),
        (b"{}", {"Content-Type": "text/csv"}, 400, "BodyUnreadable"),
        (b"{}", {"Content-Encoding": "br"}, 400, "BodyUnreadable"),
        (b"no gzip", {"Content-Encoding": "gzip"}, 400, "BodyUnreadable"),
        pytest.param(BOMB, {"Content-Encoding": "zstd"}, 413, "BodyTooLarge", id="bomb"),
        pytest.param(b"x" * (2 << 20), {}, 413, "BodyTooLarge", id="large"),
        (b'{"id": "x"}', {}, 422, "RowsRefused"),
        (b'{"other": 1}', {}, 422, "RowsRefused"),
    ],
)
def test_a_bad_body_is_refused_and_the_channel_goes_on(
    landing: Landing, writer: Writer, body: bytes, headers: dict[str, str], status: int, error: str
) -> None:
    token = writer.open("c")["next_continuation_token"]
    refused = writer.append("c", token, body, "9", headers=headers)
    assert (refused.status_code, refused.json()["error"]) == (status, error), refused.text
    assert writer.append("c", token, [{"id": 1}], "1").status_code == 200
    writer.flush("c")
    assert landing.rows(columns="id") == [(1,)]
    assert landing.token("C") == "1"


def test_a_body_without_a_length_is_bounded_too(writer: Writer) -> None:
    token = writer.open("c")["next_continuation_token"]
    refused = writer.http.post(
        "/v1/tables/orders/channels/c/rows", params={"continuation_token": token}, content=iter([b"x" * (1 << 19)] * 4)
    )
    assert refused.status_code == 413


def test_bad_rows_are_answered_with_their_place(writer: Writer) -> None:
    token = writer.open("c", on_error="continue")["next_continuation_token"]
    answer = writer.append("c", token, [{"id": 1}, {"id": "x"}], "2").json()
    assert (answer["rows"], answer["error_count"]) == (1, 1)
    assert answer["errors"] == [
        {"row_index": 1, "column": "id", "kind": "invalid_value", "message": "'x' (str) is not a number"}
    ]


def test_bad_rows_go_to_a_quarantine_that_the_writer_may_write(landing: Landing, writer: Writer, tokens: Path) -> None:
    how = {"on_error": "continue", "quarantine": "bad"}
    refused = writer.http.put("/v1/tables/orders/channels/c", json=how)
    assert (refused.status_code, refused.json()["error"]) == (403, "IngestForbidden")
    assert not (landing.root / "bad").exists()
    grant(tokens, app="secret: orders bad")
    writer.append("c", writer.open("c", **how)["next_continuation_token"], [{"id": 1}, {"id": "x"}], "2")
    writer.flush("c")
    assert landing.rows("bad", "place, row") == [("row 1", '{"id": "x"}')]


def test_each_token_writes_its_own_tables_and_counts_from_the_next_request_on(
    landing: Landing, address: str, tokens: Path
) -> None:
    def open_as(token: str | None) -> httpx.Response:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.put(f"{address}/v1/tables/orders/channels/c", headers=headers, timeout=60)

    assert [open_as(token).status_code for token in (None, "guess", "foreign")] == [401, 401, 403]
    assert open_as(None).headers["WWW-Authenticate"] == "Bearer"
    assert open_as("secret").status_code == 200
    grant(tokens, app="renewed: o*s")
    assert [open_as(token).status_code for token in ("secret", "renewed")] == [401, 200]
    tokens.write_text("half of a fi")
    assert open_as("renewed").status_code == 401


@pytest.mark.parametrize("limit", ["of the table", "of all tables"])
def test_full_buffers_are_429_with_a_time_to_wait(landing: Landing, tokens: Path, limit: str) -> None:
    how = {"all_bytes" if limit == "of the table" else "service_bytes": 10_000}
    landing.create()
    with (
        served(landing, tokens, **how) as address,
        httpx.Client(base_url=address, headers={"Authorization": "Bearer secret"}, timeout=60) as http,
    ):
        writer = Writer(http)
        token = writer.open("c")["next_continuation_token"]
        rows = [{"id": at, "name": "n" * 100} for at in range(200)]
        taken = writer.append("c", token, rows, "1")
        assert taken.status_code == 200
        token = taken.json()["next_continuation_token"]
        answers = [writer.append("c", token, rows, "2")]
        assert answers[0].status_code == 429
        assert int(answers[0].headers["Retry-After"]) >= 1
        while answers[-1].status_code == 429:
            answers.append(writer.append("c", token, rows, "2"))
        writer.flush("c")
    assert landing.sql("SELECT count(*) FROM {t}")[0][0] == 400


def test_what_is_not_there_is_404_and_what_cannot_be_written_409(landing: Landing, address: str, tokens: Path) -> None:
    grant(tokens, app="secret: *")
    landing.create("generated", "id BIGINT, g BIGINT GENERATED ALWAYS AS (id + 1)")
    headers = {"Authorization": "Bearer secret"}
    with httpx.Client(base_url=address, headers=headers, timeout=60) as http:
        found = {table: http.put(f"/v1/tables/{table}/channels/c") for table in ("nowhere", "generated")}
        assert [(one.status_code, one.json()["error"]) for one in found.values()] == [
            (404, "TableNotFound"),
            (409, "TableNotSupported"),
        ]
        assert Writer(http).append("never opened", "1_0", [{"id": 1}]).json()["error"] == "ChannelNotFound"
        assert http.put("/v1/tables/orders/channels/c", json={"typo": 1}).status_code == 400
        assert http.put("/v1/tables/orders/channels/c", json={"on_error": "ignore"}).status_code == 400


def test_two_services_share_a_table_and_a_channel_belongs_to_one_of_them(
    landing: Landing, writer: Writer, tokens: Path
) -> None:
    headers = {"Authorization": "Bearer secret"}
    with served(landing, tokens) as address, httpx.Client(base_url=address, headers=headers, timeout=60) as http:
        writers = [writer, Writer(http)]

        def write(number: int) -> None:
            turn = writers[number].open(f"c{number}")["next_continuation_token"]
            for token in range(10):
                rows = [{"id": 100 * number + token}]
                turn = writers[number].append(f"c{number}", turn, rows, str(token)).json()["next_continuation_token"]
                assert writers[number].flush(f"c{number}").status_code == 200

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(write, range(2)))
        written = sorted(landing.rows(columns="id"))
        assert written == [(100 * number + token,) for number in range(2) for token in range(10)]
        first = writer.open("shared")
        writer.append("shared", first["next_continuation_token"], [{"id": 900}], "1")
        writer.flush("shared")
        taken = writers[1].open("shared")
        assert taken["channel_status"]["last_committed_offset_token"] == "1"
        writers[1].append("shared", taken["next_continuation_token"], [{"id": 901}], "2")
        writer.append("shared", f"{first['next_continuation_token'].partition('_')[0]}_1", [{"id": 902}], "x")
        refused = writer.flush("shared")
        assert (refused.status_code, refused.json()["code"]) == (409, 20)
        assert writers[1].flush("shared").json()["last_committed_offset_token"] == "2"
    assert landing.rows(columns="id")[-2:] == [(900,), (901,)]


def test_a_service_adds_no_columns_unless_it_was_started_so(writer: Writer) -> None:
    refused = writer.http.put("/v1/tables/orders/channels/c", json={"evolve_schema": True})
    assert refused.status_code == 400
    assert "--evolve-schema" in refused.text


def test_a_dropped_channel_is_gone_with_its_token(landing: Landing, writer: Writer) -> None:
    writer.append("c", writer.open("c")["next_continuation_token"], [{"id": 1}], "1")
    writer.flush("c")
    assert writer.http.delete("/v1/tables/orders/channels/c").status_code == 204
    assert writer.http.delete("/v1/tables/orders/channels/c").status_code == 204
    assert writer.status("c") == {}
    assert writer.open("c")["channel_status"]["last_committed_offset_token"] is None


def test_a_drop_by_its_own_open_leaves_the_channel_of_a_later_writer(landing: Landing, writer: Writer) -> None:
    place = "/v1/tables/orders/channels/c"
    own, later = (
        {name: writer.open("c")["channel_status"][name] for name in ("created_on_ms", "client_sequencer")}
        for _ in range(2)
    )
    assert writer.http.delete(place, params=own).status_code == 204
    assert writer.flush("c").json()["client_sequencer"] == later["client_sequencer"]
    assert writer.http.delete(place, params={"client_sequencer": 2}).json()["error"] == "InvalidArgument"
    for _ in range(2):
        assert writer.http.delete(place, params=later).status_code == 204
    assert landing.records() == {}
    assert writer.flush("c").status_code == 404


def test_health_metrics_and_the_document_need_no_token(address: str, writer: Writer) -> None:
    writer.append("c", writer.open("c", on_error="continue")["next_continuation_token"], [{"id": 1}, {"id": "x"}], "1")
    assert httpx.get(f"{address}/health").json() == {"status": "ok", "open_channels": 1}
    metrics = httpx.get(f"{address}/metrics")
    assert metrics.headers["Content-Type"].startswith("application/openmetrics-text")
    assert 'tidemark_ingest_rows_total{table="orders"} 1.0' in metrics.text
    assert 'tidemark_ingest_row_errors_total{table="orders"} 1.0' in metrics.text
    assert "tidemark_ingest_open_channels 1.0" in metrics.text
    document: dict[str, Any] = httpx.get(f"{address}/openapi.json").json()
    assert "/v1/tables/{table}/channels/{channel}/rows" in document["paths"]
