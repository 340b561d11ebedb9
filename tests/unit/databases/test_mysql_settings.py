"""A setting of a MySQL or MariaDB that prevents its replication is reported with the statement that mends it."""

from __future__ import annotations

import pytest

from tidemark.replication.sources.mysql.catalog import ServerFacts
from tidemark.replication.sources.mysql.dialects import MARIADB
from tidemark.replication.sources.mysql.validation import problems_of_settings

SOUND = {
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "binlog_expire_logs_seconds": "604800",
}


def told(**variables: str) -> list[str]:
    facts = ServerFacts(MARIADB, (11, 4, 2), "11.4.2-MariaDB", "0-1", 1, "t@%", {**SOUND, **variables})
    return [one.text for one in problems_of_settings(facts)]


@pytest.mark.parametrize(
    ("variables", "limit"),
    [
        ({"max_binlog_total_size": "1073741824", "binlog_space_limit": "1073741824"}, "max_binlog_total_size"),
        ({"binlog_space_limit": "1073741824"}, "binlog_space_limit"),
    ],
)
def test_a_limit_of_the_size_of_the_log_is_told_once(variables: dict[str, str], limit: str) -> None:
    (text,) = told(**variables)
    assert text.startswith(f"The server has {limit} = 1073741824: its log is removed by size")
    assert f"SET GLOBAL {limit} = 0" in text


def test_a_log_without_a_limit_is_sound() -> None:
    assert told(max_binlog_total_size="0", binlog_space_limit="0") == []
