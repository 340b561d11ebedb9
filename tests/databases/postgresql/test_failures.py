"""What libpq and servers say when a connection fails: tried again where that may help, else with what mends it."""

from __future__ import annotations

import psycopg2
import pytest

from tidemark.errors import SourceRefused, SourceUnreachable
from tidemark.model.source_address import SourceAddress, SourceKind
from tidemark.replication.sources.postgresql.failures import connect_failure, source_text

ADDRESS = SourceAddress(SourceKind.POSTGRESQL, "db.example", 5432, "Shop", 'an"n', "s3cret", {"sslpassword": "k3y"})
AT = 'connection to server at "db.example", port 5432 failed: '


@pytest.mark.parametrize(
    "said",
    [
        AT + "Connection refused\n\tIs the server running on that host and accepting TCP/IP connections?",
        'could not translate host name "db.example" to address: Name or service not known',
        AT + "timeout expired",
        AT + "server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally",
        AT + "No route to host",
        AT + "Network is unreachable",
        AT + "could not receive data from server: Connection reset by peer",
        AT + "FATAL:  the database system is starting up",
        AT + "FATAL:  the database system is not yet accepting connections",
        AT + "FATAL:  sorry, too many clients already",
        AT + "FATAL:  remaining connection slots are reserved for non-replication superuser connections",
        AT + 'FATAL:  too many connections for database "shop"',
        AT + "FATAL:  number of requested standby connections exceeds max_wal_senders (currently 10)",
        AT + "FATAL:  terminating connection due to administrator command",
    ],
)
def test_what_may_pass_is_unreachable(said: str) -> None:
    failure = connect_failure(psycopg2.OperationalError(said), ADDRESS)
    assert isinstance(failure, SourceUnreachable)
    assert 'postgresql://an"n@db.example:5432/Shop cannot be reached' in str(failure)


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ('FATAL:  password authentication failed for user "ann"', "Correct user and password"),
        ("fe_sendauth: no password supplied", "Correct user and password"),
        ('FATAL:  role "ann" does not exist', "create the role"),
        ('FATAL:  database "Shop" does not exist', "Correct the database"),
        ('FATAL:  no pg_hba.conf entry for replication connection from host "1.2.3.4", user "ann"', "pg_hba.conf"),
        ("FATAL:  must be superuser or replication role to start walsender", 'ALTER ROLE "an""n" REPLICATION'),
        ("FATAL:  permission denied to start WAL sender", 'ALTER ROLE "an""n" REPLICATION'),  # from 16 on
        ('FATAL:  permission denied for database "Shop"', 'GRANT CONNECT ON DATABASE "Shop" TO "an""n"'),
        ('FATAL:  role "ann" is not permitted to log in', 'ALTER ROLE "an""n" LOGIN'),
        ('invalid sslmode value: "nonsense"', "Correct the connection's parameters"),
        ('certificate "x" could not be read', "Correct the connection's parameters"),
        ("SCHWERWIEGEND:  etwas anderes", "Check the server's log"),
    ],
)
def test_what_will_not_pass_by_itself_is_refused_with_a_remedy(said: str, remedy: str) -> None:
    failure = connect_failure(psycopg2.OperationalError(AT + said), ADDRESS)
    assert isinstance(failure, SourceRefused)
    assert remedy in str(failure)


def test_neither_message_nor_record_nor_address_shows_a_secret() -> None:
    failure = connect_failure(psycopg2.OperationalError("bad: password=s3cret sslpassword=k3y"), ADDRESS)
    for shown in (str(failure), repr(failure.to_record()), repr(ADDRESS), source_text(ADDRESS)):
        assert "s3cret" not in shown
        assert "k3y" not in shown
