"""Requests that the ingest service answers before a channel has part in it: bodies, fields and the file of tokens."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from fastapi.testclient import TestClient

from tests.unit.channels.specs import field, spec
from tidemark.channels.driver.service.access import Access
from tidemark.channels.driver.service.app import ServiceLimits, ingest_app
from tidemark.channels.driver.service.bodies import ARROW, rows_of_body
from tidemark.channels.driver.service.desk import IngestDesk
from tidemark.channels.driver.service.measures import Measures
from tidemark.channels.model.grants import Grants
from tidemark.channels.planning.grants import with_grant
from tidemark.errors import BodyTooLarge, BodyUnreadable
from tidemark.model.codec import to_json

LIMIT = 1 << 20
CHANNEL = "/v1/tables/db.orders/channels/c"
JSON = {"Content-Type": "application/json"}
ORDERS = spec(field("id", "long"))
LONG = "x" * 100_000
COMPRESSED = pa.ipc.IpcWriteOptions(compression="zstd")


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    found = tmp_path / "tokens.json"
    found.write_text(to_json(with_grant(Grants(), "app", "secret", ("db.*",), datetime(2026, 1, 1, tzinfo=UTC))))
    return found


@pytest.fixture
def http(tokens: Path) -> Iterator[TestClient]:
    """The service without a client: no request of these tests reaches a channel."""
    no_client: Any = None
    measures = Measures(open_channels=lambda: 0, buffered_bytes=lambda: 0)
    app = ingest_app(IngestDesk(no_client, lambda _: {}), Access(tokens), measures, ServiceLimits(LIMIT))
    with TestClient(app, headers={"Authorization": "Bearer secret"}) as client:
        yield client


def stream(table: pa.Table, options: pa.ipc.IpcWriteOptions | None = None) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def views_of_one(text: str, number: int) -> pa.Array:
    views = pa.array([text], pa.string_view()).buffers()
    return pa.Array.from_buffers(pa.string_view(), number, [None, pa.py_buffer(bytes(views[1]) * number), *views[2:]])


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer another"}])
def test_a_body_is_bounded_on_each_route_before_a_token_is_asked_for(http: TestClient, headers: dict[str, str]) -> None:
    half = b" " * (LIMIT // 2)
    for content in (iter([half, half, b"{}"]), half + half + b"{}"):
        refused = http.put(CHANNEL, content=content, headers={**JSON, **headers})
        assert (refused.status_code, refused.json()["error"]) == (413, "BodyTooLarge")
    refused = http.post("/v1/tables/db.orders/channel-status", content=iter([half] * 3), headers=JSON)
    assert refused.status_code == 413


def test_a_body_of_exactly_the_limit_is_read(http: TestClient) -> None:
    body = b'{"channel_names": []}'
    answer = http.post("/v1/tables/db.orders/channel-status", content=body.ljust(LIMIT), headers=JSON)
    assert (answer.status_code, answer.json()) == (200, {"channel_statuses": {}})


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (b'{"offset_token": "\\ud800"}', "body.offset_token="),
        (b'{"offset_token": NaN}', "body.offset_token="),
        (b'{"\\ud800": 1}', "body"),
        (b'{"offset_token": "' + b"x" * 50_000 + b'"}', "body.offset_token="),
        (b"[" * 100_000, ""),
        (b"no json", "body"),
    ],
)
def test_a_field_that_does_not_fit_is_named_and_not_sent_back(http: TestClient, body: bytes, named: str) -> None:
    refused = http.put(CHANNEL, content=body, headers=JSON)
    assert refused.status_code == 400
    assert named in refused.text
    assert len(refused.content) < 1_000


def test_a_parameter_that_is_missing_is_named(http: TestClient) -> None:
    refused = http.post(f"{CHANNEL}/rows")
    assert (refused.status_code, refused.json()["error"]) == (400, "InvalidArgument")
    assert "query.continuation_token" in refused.json()["message"]


@pytest.mark.parametrize("text", ["", "[]", "null", "{}", '{"grants": 5}', '{"grants": [5]}', "[" * 100_000, "\0"])
def test_a_file_of_tokens_with_another_content_refuses_everybody(http: TestClient, tokens: Path, text: str) -> None:
    tokens.write_text(text)
    assert http.put(CHANNEL).status_code == 401
    tokens.unlink()
    assert http.put(CHANNEL).status_code == 401


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(stream(pa.table({"s": ["x" * LIMIT] * 3}), COMPRESSED), id="compressed"),
        pytest.param(stream(pa.table({"n": pa.nulls(10_000_000)})), id="rows without values"),
        pytest.param(stream(pa.table({"s": pa.array([LONG] * 500).dictionary_encode()})), id="dictionary"),
        pytest.param(stream(pa.table({"s": views_of_one(LONG, 500)})), id="views"),
    ],
)
def test_a_stream_of_arrow_is_bounded_by_the_values_that_it_stands_for(body: bytes) -> None:
    assert len(body) < LIMIT
    with pytest.raises(BodyTooLarge):
        rows_of_body(body, ARROW, ORDERS, LIMIT)


def test_streams_of_all_usual_types_are_read() -> None:
    table = pa.table(
        {
            "id": [1, None],
            "text": ["a", None],
            "view": pa.array(["a" * 30, None], pa.string_view()),
            "coded": pa.array(["a", None]).dictionary_encode(),
            "numbers": pa.array([1, None]).dictionary_encode(),
            "list": [[1, 2], None],
            "large": pa.array([["a"], None], pa.large_list(pa.string())),
            "fixed": pa.array([[1, 2], None], pa.list_(pa.int64(), 2)),
            "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
            "struct": [{"a": {"b": "c"}}, None],
            "nothing": pa.nulls(2),
        }
    )
    for options in (None, COMPRESSED, pa.ipc.IpcWriteOptions(compression="lz4")):
        assert rows_of_body(stream(table, options), ARROW, ORDERS, LIMIT) == table
        assert rows_of_body(stream(table.slice(0, 0), options), ARROW, ORDERS, LIMIT).num_rows == 0


def test_a_garbled_stream_of_arrow_is_unreadable() -> None:
    body = stream(pa.table({"id": [1, 2], "text": ["a", None]}), COMPRESSED)
    for place in range(len(body)):
        for garbled in (body[:place], body[:place] + b"\xff\xff" + body[place + 2 :]):
            try:
                rows_of_body(garbled, ARROW, ORDERS, LIMIT)
            except (BodyTooLarge, BodyUnreadable):
                continue
