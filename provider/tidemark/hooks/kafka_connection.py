"""The brokers that an Airflow connection of the type `kafka` leads to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidArgument
from tidemark.kafka.address import KafkaAddress, is_secret

if TYPE_CHECKING:
    from airflow.sdk import Connection

__all__ = ["LEFT_TO_OTHERS", "PASSED_ON", "address_of", "kafka_address"]

PASSED_ON = frozenset(
    {
        "security.protocol", "sasl.mechanism", "sasl.mechanisms", "sasl.username", "sasl.password",
        "sasl.kerberos.service.name", "sasl.kerberos.principal", "sasl.kerberos.keytab",
        "sasl.oauthbearer.method", "sasl.oauthbearer.client.id", "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.scope", "sasl.oauthbearer.extensions", "sasl.oauthbearer.token.endpoint.url",
        "ssl.ca.location", "ssl.ca.pem", "ssl.certificate.location", "ssl.certificate.pem", "ssl.key.location",
        "ssl.key.pem", "ssl.key.password", "ssl.keystore.location", "ssl.keystore.password", "ssl.crl.location",
        "ssl.cipher.suites", "ssl.curves.list", "ssl.sigalgs.list", "ssl.endpoint.identification.algorithm",
        "enable.ssl.certificate.verification", "client.id", "client.dns.lookup", "client.rack",
        "broker.address.family", "broker.address.ttl", "socket.timeout.ms", "socket.connection.setup.timeout.ms",
        "socket.keepalive.enable", "socket.nagle.disable", "connections.max.idle.ms", "reconnect.backoff.ms",
        "reconnect.backoff.max.ms", "metadata.max.age.ms", "metadata.recovery.strategy", "fetch.min.bytes",
        "fetch.max.bytes", "fetch.message.max.bytes", "max.partition.fetch.bytes",
        "receive.message.max.bytes", "check.crcs",
    }
)  # fmt: skip
"""Extras that say how brokers are reached: settings of librdkafka. None of them loads code or starts a program."""

LEFT_TO_OTHERS = frozenset(
    {
        "group.id", "group.instance.id", "group.protocol", "enable.auto.commit", "auto.commit.interval.ms",
        "enable.auto.offset.store", "auto.offset.reset", "isolation.level", "enable.partition.eof",
        "session.timeout.ms", "heartbeat.interval.ms", "max.poll.interval.ms", "partition.assignment.strategy",
        "allow.auto.create.topics", "acks", "request.required.acks", "enable.idempotence", "transactional.id",
        "compression.type", "compression.codec", "linger.ms", "batch.size", "batch.num.messages", "retries",
        "message.send.max.retries", "delivery.timeout.ms", "message.timeout.ms", "debug", "log_level",
        "statistics.interval.ms", "fetch.wait.max.ms",
    }
)  # fmt: skip
"""Extras that other readers and writers use of the same connection, and that mean nothing here."""

_SERVERS = "bootstrap.servers"
_PORT = 9092


def kafka_address(conn_id: str) -> KafkaAddress:
    """The address of the connection. Its secrets are masked in the logs of tasks.

    Raises AirflowNotFoundException for a connection that does not exist, InvalidArgument as `address_of`.
    """
    from airflow.sdk import BaseHook

    from tidemark.hooks._origins import extra_of
    from tidemark.hooks._secrets import mask

    connection = BaseHook.get_connection(conn_id)
    mask(connection.password or "", *(_text(v) for name, v in extra_of(connection).items() if is_secret(name) and v))
    return address_of(connection)


def address_of(connection: Connection) -> KafkaAddress:
    """The address of the connection. It comes from the extra `bootstrap.servers` and others, as in Airflow's Kafka
    provider, or from host, port, login and password.

    Raises InvalidArgument for another type of connection, and for a connection without brokers. The same for an
    unsupported extra that would change how brokers are reached.
    """
    if connection.conn_type != "kafka":
        raise _unfit(connection, f"its type is {connection.conn_type!r}; give one of type kafka")
    extra = {name: _text(value) for name, value in connection.extra_dejson.items() if value not in (None, "")}
    brokers = extra.pop(_SERVERS, "") or _host(connection)
    if not brokers:
        raise _unfit(connection, f"it names no brokers; give the extra {_SERVERS}, as host:9092,other:9092")
    if unknown := sorted(set(extra) - PASSED_ON - LEFT_TO_OTHERS):
        known = ", ".join(sorted({_SERVERS, *PASSED_ON}))
        raise _unfit(connection, f"its extra {', '.join(unknown)} is not supported here; those that are: {known}")
    settings = {**_login(connection), **{name: value for name, value in extra.items() if name in PASSED_ON}}
    return KafkaAddress(brokers, settings, connection.conn_id)


def _host(connection: Connection) -> str:
    return f"{connection.host}:{connection.port or _PORT}" if connection.host else ""


def _login(connection: Connection) -> Mapping[str, str]:
    said = {"sasl.username": connection.login, "sasl.password": connection.password}
    return {name: value for name, value in said.items() if value}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _unfit(connection: Connection, problem: str) -> InvalidArgument:
    return InvalidArgument(argument="kafka_conn_id", value=connection.conn_id, problem=problem)
