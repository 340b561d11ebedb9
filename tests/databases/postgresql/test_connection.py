"""A connection has fixed settings, and nothing that goes wrong with it shows a password."""

from __future__ import annotations

import traceback
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.ports import free_port
from tests.postgresql import PASSWORD, PostgresServer
from tidemark.errors import SourceRefused, SourceUnreachable
from tidemark.errors.tree import TidemarkError
from tidemark.model.source_address import SourceAddress
from tidemark.replication.sources.postgresql.connection import SESSION, connect
from tidemark.replication.sources.postgresql.pinned import jdbc_properties

SHORT = timedelta(seconds=3)


@pytest.fixture(scope="module")
def address(source_server: PostgresServer) -> SourceAddress:
    return source_server.address(source_server.new_database())


def test_settings_of_role_and_database_do_not_change_what_values_look_like(
    source_server: PostgresServer, address: SourceAddress
) -> None:
    source_server.sql("CREATE ROLE styled SUPERUSER LOGIN PASSWORD 'x'")
    for name, value in (("datestyle", "German"), ("timezone", "Asia/Seoul"), ("bytea_output", "escape")):
        source_server.sql(f"ALTER ROLE styled SET {name} = '{value}'")
    source_server.sql(f"ALTER DATABASE {address.database} SET statement_timeout = '1s'")
    for replication in (False, True):
        with connect(replace(address, user="styled", password="x"), replication=replication) as connection:
            cursor = connection.cursor()
            for name, value in SESSION.items():
                cursor.execute(f"SHOW {name}")
                shown = str(cursor.fetchone()[0]).replace(" ", "")
                assert shown == value, name
    with connect(replace(address, user="styled", password="x")) as connection:
        cursor = connection.cursor()
        cursor.execute(
            "SELECT '2024-02-29'::date::text, '2024-02-29 12:00+09'::timestamptz::text, '\\x00ff'::bytea::text,"
            " 0.1::float8::text, '1 day 02:00'::interval::text"
        )
        assert cursor.fetchone() == ("2024-02-29", "2024-02-29 03:00:00+00", "\\x00ff", "0.1", "1 day 02:00:00")


def test_the_driver_of_a_backfill_goes_the_way_of_the_client(address: SourceAddress) -> None:
    parameters = {
        "sslmode": "verify-full", "sslrootcert": "/ca.pem", "connect_timeout": "7", "channel_binding": "require",
        "gssencmode": "prefer", "krbsrvname": "pg", "target_session_attrs": "read-write", "keepalives": "1",
        "options": "-c role=reader -c lock_timeout=9min",
    }  # fmt: skip
    found = jdbc_properties(replace(address, parameters=parameters))
    wanted = {
        "sslmode": "verify-full", "sslrootcert": "/ca.pem", "connectTimeout": "7", "channelBinding": "require",
        "gssEncMode": "prefer", "kerberosServerName": "pg", "targetServerType": "primary",
    }  # fmt: skip
    own = {"ApplicationName", "options", "password", "tcpKeepAlive", "user"}
    preferring = replace(address, parameters={"target_session_attrs": "prefer-standby"})
    assert jdbc_properties(preferring)["targetServerType"] == "preferSecondary"
    assert {name: value for name, value in found.items() if name not in own} == wanted
    assert found["options"].startswith("-c role=reader -c lock_timeout=9min -c lock_timeout=100 ")
    assert jdbc_properties(address)["options"].startswith("-c lock_timeout=100 ")


def test_what_was_done_without_autocommit_is_committed_at_the_end_or_rolled_back(address: SourceAddress) -> None:
    with connect(address, autocommit=False) as connection:
        connection.cursor().execute("CREATE TABLE public.kept (id int)")
    with pytest.raises(SourceRefused, match="division by zero"), connect(address, autocommit=False) as connection:
        connection.cursor().execute("CREATE TABLE public.lost (id int); SELECT 1/0")
    with connect(address) as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT to_regclass('public.kept') IS NOT NULL, to_regclass('public.lost') IS NULL")
        assert cursor.fetchone() == (True, True)


def test_a_source_that_is_down_is_unreachable_and_named(address: SourceAddress) -> None:
    port = free_port()
    with pytest.raises(SourceUnreachable, match=rf"postgresql://postgres@127\.0\.0\.1:{port}/.*refused"):
        _open(replace(address, port=port))
    with pytest.raises(SourceUnreachable, match="no-such-host"):
        _open(replace(address, host="no-such-host.invalid"))


def test_what_the_server_refuses_says_what_to_do(source_server: PostgresServer, address: SourceAddress) -> None:
    source_server.sql("CREATE ROLE plain LOGIN PASSWORD 'x'")
    source_server.sql("CREATE ROLE nobody_in PASSWORD 'x'")
    closed = source_server.new_database()
    source_server.sql(f"REVOKE CONNECT ON DATABASE {closed} FROM PUBLIC")
    plain = replace(address, user="plain", password="x")
    refused = {
        "Correct user and password": replace(address, password="wrong"),
        "Correct the database": replace(address, database="no_such_database"),
        f'GRANT CONNECT ON DATABASE "{closed}" TO "plain"': replace(plain, database=closed),
        'ALTER ROLE "nobody_in" LOGIN': replace(plain, user="nobody_in"),
        "Correct the connection's parameters": replace(address, parameters={"no_such_parameter": "1"}),
    }
    for remedy, one in refused.items():
        with pytest.raises(SourceRefused) as caught:
            _open(one)
        assert remedy in str(caught.value)
    with pytest.raises(SourceRefused, match='ALTER ROLE "plain" REPLICATION'):
        _open(plain, replication=True)


def test_a_server_that_has_no_room_or_goes_away_is_unreachable(
    source_server: PostgresServer, address: SourceAddress
) -> None:
    source_server.sql("CREATE ROLE crowded LOGIN CONNECTION LIMIT 0 PASSWORD 'x'")
    with pytest.raises(SourceUnreachable, match="too many connections"):
        _open(replace(address, user="crowded", password="x"))
    with pytest.raises(SourceUnreachable, match="terminat"), connect(address) as connection:
        connection.cursor().execute("SELECT pg_terminate_backend(pg_backend_pid())")


def test_no_error_and_no_traceback_shows_a_password(address: SourceAddress) -> None:
    secret = "s3cret with 'quotes' and spaces"
    key = {"sslpassword": "k3y-s3cret"}
    wrong = (
        replace(address, password=secret),
        replace(address, password=secret, port=free_port(), parameters=key),
        replace(address, password=secret, parameters={"no_such_parameter": "1", **key}),
        replace(address, password=secret, parameters={"sslmode": "nonsense", **key}),
        replace(address, password=secret, host="no-such-host.invalid", parameters=key),
        replace(address, password=secret + "\0"),
        replace(address, password=secret, parameters={"sslcert": "/nowhere/cert", "sslmode": "require", **key}),
    )
    for one in wrong:
        with pytest.raises(TidemarkError) as caught:
            _open(one)
        chain = [caught.value, caught.value.__cause__, caught.value.__context__]
        frames = [frame for error in chain if error for frame, _ in traceback.walk_tb(error.__traceback__)]
        shown = [repr(frame.f_locals) for frame in frames if frame.f_code.co_filename != __file__]
        assert shown
        shown += [repr(caught.value.to_record()), "".join(traceback.format_exception(caught.value))]
        assert not [text for text in shown for hidden in ("s3cret", "k3y") if hidden in text], one


def test_a_password_in_what_the_server_says_is_hidden(address: SourceAddress) -> None:
    with pytest.raises(SourceRefused) as caught, connect(address) as connection:
        connection.cursor().execute(f"SELECT '{PASSWORD}'::int")
    assert PASSWORD not in str(caught.value)
    assert "***" in str(caught.value)


def _open(address: SourceAddress, *, replication: bool = False) -> None:
    with connect(address, timeout=SHORT, replication=replication):
        pass
