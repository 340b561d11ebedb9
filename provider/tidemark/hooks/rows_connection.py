"""The connection of a source of rows, by its id: Kafka's brokers, a database, an HTTP API, or one for a function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidArgument
from tidemark.model.source_connection import SourceConnection

if TYPE_CHECKING:
    from airflow.sdk import Connection

__all__ = ["rows_connection"]

_BROKERS = "bootstrap.servers"
_NO_HEADERS = frozenset(
    {"timeout", "proxies", "verify", "cert", "stream", "allow_redirects", "max_redirects", "check_response",
     "trust_env", "auth_type", "auth_kwargs", "headers"}
)  # fmt: skip


def rows_connection(conn_id: str, source: str) -> SourceConnection:
    """The connection for a job's environment. Airflow's masker gets its password and all texts of its extras that have
    a secret name.

    `source`: kafka needs a connection of type kafka; sql one of a database whose provider is installed; http one of
    type http. Any other source takes each type. Raises AirflowNotFoundException, and InvalidArgument for a connection
    that does not fit.
    """
    from airflow.sdk import BaseHook

    from tidemark.hooks._origins import extra_of
    from tidemark.hooks._secrets import mask_connection

    connection = BaseHook.get_connection(conn_id)
    mask_connection({"storage_options": extra_of(connection)}, password=connection.password, store_url=None)
    if source == "kafka":
        return _of_kafka(conn_id)
    if source == "http" and connection.conn_type != "http":
        raise _unfit(conn_id, f"its type is {connection.conn_type!r}; give one of type http")
    return SourceConnection(
        conn_id=conn_id,
        conn_type=connection.conn_type or "",
        host=connection.host or None,
        port=connection.port or None,
        login=connection.login or None,
        password=connection.password or None,
        schema=connection.schema or None,
        extra=_headers(connection.extra_dejson) if source == "http" else connection.extra_dejson,
        sqlalchemy_url=_url(connection) if source == "sql" else None,
    )


def _of_kafka(conn_id: str) -> SourceConnection:
    from tidemark.hooks.kafka_connection import kafka_address

    address = kafka_address(conn_id)
    return SourceConnection(conn_id, "kafka", extra={**address.settings, _BROKERS: address.brokers})


def _headers(extra: Mapping[str, Any]) -> dict[str, str]:
    """The HTTP headers among the extras, as Airflow's own hook has them."""
    named = {name: value for name, value in extra.items() if name not in _NO_HEADERS and isinstance(value, str)}
    more = extra.get("headers")
    return {**named, **({str(k): str(v) for k, v in more.items()} if isinstance(more, Mapping) else {})}


def _url(connection: Connection) -> str:
    """SQLAlchemy's URL, which the hook of the connection's type makes."""
    from airflow.sdk import BaseHook
    from airflow.sdk.exceptions import AirflowException

    from tidemark.hooks._secrets import mask

    try:
        url = BaseHook.get_hook(connection.conn_id).sqlalchemy_url
    except (AirflowException, ImportError, AttributeError, NotImplementedError, ValueError, TypeError) as error:
        problem = f"its type {connection.conn_type!r} leads to no database: {error}. Install the provider of that type"
        raise _unfit(connection.conn_id, problem) from error
    text = url if isinstance(url, str) else url.render_as_string(hide_password=False)
    mask(connection.password or "", text)
    return str(text)


def _unfit(conn_id: str, problem: str) -> InvalidArgument:
    return InvalidArgument(argument="source_options", value=f"conn_id={conn_id}", problem=problem)
