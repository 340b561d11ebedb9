"""A text that PostgreSQL does not convert ends no watch unseen: it is an error of ours, without the text."""

from __future__ import annotations

import traceback

import pytest

from tidemark.errors import SourceRefused
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.replication.sources.postgresql.failures import failures_named


def test_a_text_in_no_known_encoding_is_refused_without_its_bytes() -> None:
    address = SourceAddress(SourceKind.POSTGRESQL, "db", 5432, "shop", "reader")
    with pytest.raises(SourceRefused, match=r"not SQL_ASCII") as refused, failures_named(address):
        b"s\xe9cret".decode()
    assert "invalid continuation byte at byte 1" in str(refused.value)
    assert "cret" not in "".join(traceback.format_exception(refused.value)).replace('b"s\\xe9cret"', "")
