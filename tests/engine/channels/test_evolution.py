"""Rows may add columns to their table and remove NOT NULL, if their channel was opened so."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.engine.channels.landing import Landing
from tidemark.channels.driver.evolution import delta_type
from tidemark.channels.driver.json_rows import JsonLines
from tidemark.errors import IngestPaused, InvalidArgument, RowsRefused

pytestmark = pytest.mark.spark


def types(landing: Landing) -> dict[str, str]:
    return {row.col_name: row.data_type for row in landing.sql("DESCRIBE {t}") if row.col_name.isidentifier()}


@pytest.mark.parametrize("mapping", ["none", "name"])
def test_rows_add_their_columns_and_remove_not_null(landing: Landing, mapping: str) -> None:
    landing.create(columns="id BIGINT NOT NULL, name STRING NOT NULL", delta__columnMapping__mode=mapping)
    table_id = landing.log().state().metadata.table_id
    with landing.client() as client:
        early = client.open_channel("early", "orders")
        early.insert_rows([{"id": 0, "name": "old"}], "1")  # is buffered while the schema changes
        channel = client.open_channel("c", "orders", evolve_schema=True)
        at = datetime(2026, 3, 1, tzinfo=UTC)
        rows: list[dict[str, Any]] = [{"id": 1, "Price": Decimal("0.5"), "at": at}, {"id": 2, "tags": [{"k": "a"}]}]
        assert not channel.insert_rows(rows, "1").errors
        assert not channel.insert_rows(JsonLines([b'{"id": 3, "name": "n", "ok": true}\n'], str), "2").errors
        early.insert_rows([{"id": 4, "name": "n", "price": 1}], "2")
    assert types(landing) == {
        "id": "bigint", "name": "string", "Price": "double", "at": "timestamp", "tags": "array<struct<k:string>>",
        "ok": "boolean",
    }  # fmt: skip
    assert landing.rows(columns="id, name, price, ok, tags[0].k") == [
        (0, "old", None, None, None), (1, None, 0.5, None, None), (2, None, None, None, "a"), (3, "n", None, True,
        None), (4, "n", 1.0, None, None),
    ]  # fmt: skip
    assert landing.log().state().metadata.table_id == table_id
    landing.sql("INSERT INTO {t} (id, price) VALUES (9, 2.5)")
    landing.sql("OPTIMIZE {t}")
    assert landing.rows(columns="count(*)") == [(6,)]


def test_without_it_a_new_column_is_an_error(landing: Landing) -> None:
    landing.create()
    with landing.client() as client:
        with pytest.raises(RowsRefused, match="no such column"):
            client.open_channel("c", "orders").insert_rows([{"id": 1, "more": 2}], "1")
        assert "more" not in str(landing.sql("DESCRIBE {t}"))


def test_two_clients_that_add_columns_at_once_both_get_theirs(landing: Landing) -> None:
    landing.create()
    failed: list[BaseException] = []

    def write(number: int) -> None:
        try:
            with landing.client(f"app {number}") as client:
                channel = client.open_channel(f"c{number}", "orders", evolve_schema=True)
                for row in range(3):
                    channel.insert_rows([{"id": row, f"of_{number}": row, "shared": row}], str(row))
                    channel.flush()
        except BaseException as error:  # noqa: BLE001 - it is shown by the test
            failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    wanted = "count(*), sum(shared), sum(of_0), sum(of_1), sum(of_2)"
    assert landing.rows(columns=wanted) == [(9, 9, 3, 3, 3)]


def test_what_cannot_become_a_column_stays_an_error(landing: Landing) -> None:
    landing.create()
    with landing.client() as client:
        channel = client.open_channel("c", "orders", evolve_schema=True, on_error="continue")
        bad = [{"id": 1, "a b": 1}, {"id": 2, "nothing": None}, {"id": 3, "mixed": {"a": 1}}, {"id": 4, "mixed": 1}]
        answer = channel.insert_rows(
            [*bad, {"id": 5, "either": 1}, {"id": 6, "either": "x"}, {"id": 7, '"ID"': 1}, {"_change_type": "x"}], "1"
        )
        assert [error.column for error in answer.errors] == ["a b", "nothing", "mixed", "mixed", '"ID"', "_change_type"]
        with pytest.raises(InvalidArgument, match="101 new columns"):
            channel.insert_rows([{f"c{number}": 1 for number in range(101)}], "2")
    assert landing.rows(columns="id, either") == [(5, "1"), (6, "x")]


def test_a_generator_of_rows_is_read_whole_though_the_table_evolves(landing: Landing) -> None:
    landing.create(columns="id BIGINT NOT NULL")
    with landing.client() as client:
        channel = client.open_channel("c", "orders", evolve_schema=True)
        assert channel.insert_rows(({"more": number} for number in range(3)), "1").rows == 3
    assert landing.rows(columns="id, more") == [(None, 0), (None, 1), (None, 2)]


def test_a_paused_table_gets_no_new_columns(landing: Landing) -> None:
    landing.create()
    with landing.client() as client:
        channel = client.open_channel("c", "orders", evolve_schema=True)
        client.pause("orders", 60)
        with pytest.raises(IngestPaused):
            channel.insert_rows([{"id": 1, "more": 1}], "1")
        assert "more" not in str(landing.sql("DESCRIBE {t}"))


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        (pa.struct([("id", pa.int64()), ("ID", pa.int64())]), None),
        (pa.struct([("", pa.int64())]), None),
        (pa.uint64(), "decimal(20,0)"),
        (pa.decimal128(12, 3), "decimal(12,3)"),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.timestamp("ns"), "timestamp"),
        (pa.time32("s"), None),
        (pa.null(), None),
        (pa.struct([]), None),
        (pa.list_(pa.null()), None),
    ],
)
def test_types_of_new_columns(kind: pa.DataType, form: str | None) -> None:
    assert delta_type(kind) == form
