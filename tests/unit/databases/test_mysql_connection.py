"""A parameter that no connection can have is named, with the connection that has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemark.errors import SourceRefused
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.replication.sources.mysql.connection import connect

pytest.importorskip("pymysql")


def _address(**parameters: str) -> SourceAddress:
    return SourceAddress(
        SourceKind.MYSQL, "localhost", 9, "shop", "u", "secret", parameters=parameters, conn_id="shop_db"
    )


def _refusal(**parameters: str) -> str:
    with pytest.raises(SourceRefused) as refusal, connect(_address(**parameters)):
        pass
    return str(refusal.value)


@pytest.mark.parametrize("value", ["10s", "", "nan", "-1", "inf", "99999999", "٫"])
def test_a_timeout_that_is_no_number_of_seconds_is_refused_with_connection_and_option(value: str) -> None:
    assert f"the connection 'shop_db': connect_timeout {value!r} is not a number of seconds" in _refusal(
        connect_timeout=value
    )


def test_a_missing_or_broken_file_of_tls_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.pem"
    broken.write_text("no certificate")
    missing = str(tmp_path / "missing.pem")
    assert f"ssl_ca {missing!r}: No such file" in _refusal(ssl_ca=missing)
    assert f"ssl_ca {str(broken)!r}: " in _refusal(ssl_ca=str(broken))
    assert f"ssl_cert {missing!r}: No such file" in _refusal(ssl_mode="REQUIRED", ssl_cert=missing)
