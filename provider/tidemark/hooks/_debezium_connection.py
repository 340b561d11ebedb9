"""The place where a Debezium lands its envelopes, by an Airflow connection of the type `debezium` or `generic`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidArgument
from tidemark.model.foreign_json import parsed
from tidemark.model.source_address import SourceAddress, SourceKind

if TYPE_CHECKING:
    from airflow.sdk import Connection

__all__ = ["EXTRAS", "debezium_address", "known_extras", "named_keys", "storage_of"]

EXTRAS = frozenset(
    {"location", "envelopes_conn_id", "storage_options", "begin", "keys", "unavailable_value", "hash_secret"}
)
_PARAMETERS = ("begin", "unavailable_value")


def debezium_address(connection: Connection) -> SourceAddress:
    """The address in the connection. Secrets of the connection that it names for brokers or a bucket are masked.

    Raises InvalidArgument for an extra that is unknown, missing or no JSON. The same for a named connection of another
    type; AirflowNotFoundException if it does not exist.
    """
    from tidemark.hooks._secrets import require_no_password

    extra = known_extras(connection, EXTRAS)
    location = str(extra.get("location") or "").strip()
    if not location:
        raise _invalid(connection, "it lacks the extra location: a directory, a bucket, or kafka: and topics")
    require_no_password("location", location)
    brokers, parameters = _reached(connection, extra, kafka=location.startswith("kafka:"))
    said = {name: str(extra[name]) for name in _PARAMETERS if name in extra}
    secret = extra.get("hash_secret")
    return SourceAddress(
        kind=SourceKind.DEBEZIUM,
        host=brokers,
        port=0,
        database=location,
        user="",
        parameters={**said, **parameters, "keys": named_keys(connection, extra)},
        hash_secret=None if secret is None else str(secret),
        conn_id=connection.conn_id,
    )


def known_extras(connection: Connection, known: frozenset[str]) -> Mapping[str, Any]:
    """The extras that are not empty. Raises InvalidArgument for one that is not `known`."""
    extra = {name: one for name, one in connection.extra_dejson.items() if one not in (None, "")}
    if unknown := sorted(set(extra) - known):
        problem = f"its extra {', '.join(unknown)} is not supported here; these are: {', '.join(sorted(known))}"
        raise _invalid(connection, problem)
    return extra


def named_keys(connection: Connection, extra: Mapping[str, Any]) -> str:
    """The extra `keys`, as JSON. Raises InvalidArgument."""
    keys = _object(connection, extra, "keys")
    if any(not isinstance(columns, list) for columns in keys.values()):
        raise _invalid(connection, "its extra keys is not a JSON object from patterns of tables to lists of columns")
    return json.dumps(keys)


def _reached(connection: Connection, extra: Mapping[str, Any], *, kafka: bool) -> tuple[str, Mapping[str, str]]:
    """Brokers with their settings, or the options of a file system."""
    from tidemark.hooks.kafka_connection import kafka_address

    named = str(extra.get("envelopes_conn_id") or "").strip()
    if kafka:
        if not named:
            raise _invalid(connection, "topics need the extra envelopes_conn_id, of a connection of the type kafka")
        found = kafka_address(named)
        return found.brokers, {"kafka": json.dumps(dict(found.settings))}
    return "", {"storage_options": storage_of(connection, extra, named)}


def storage_of(connection: Connection, extra: Mapping[str, Any], named: str) -> str:
    """The options of a file system, as JSON; `named`: the connection with the credentials, or "". Secrets are masked.
    Raises InvalidArgument, AirflowNotFoundException.
    """
    from airflow.sdk import BaseHook

    from tidemark.hooks._secrets import mask_connection

    options = _object(connection, extra, "storage_options")
    if named:
        options = {**_options_of(connection, BaseHook.get_connection(named)), **options}
    mask_connection({"storage_options": dict(options)}, password=None, store_url=None)
    return json.dumps(options)


def _options_of(connection: Connection, other: Connection) -> Mapping[str, Any]:
    """Of a connection of AWS, or of Tidemark's own."""
    if other.conn_type == "tidemark":
        from tidemark.hooks.tidemark import TidemarkHook

        return TidemarkHook(other.conn_id).settings.storage_options
    if other.conn_type == "aws":
        extra = other.extra_dejson
        said = {
            "key": other.login,
            "secret": other.password,
            "token": extra.get("aws_session_token"),
            "endpoint_url": extra.get("endpoint_url"),
        }
        options: dict[str, Any] = {name: value for name, value in said.items() if value}
        if region := extra.get("region_name"):
            options["client_kwargs"] = {"region_name": region}
        return options
    problem = f"the connection names {other.conn_id} of the type {other.conn_type!r}; give aws, tidemark or kafka"
    raise _invalid(connection, problem)


def _object(connection: Connection, extra: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = extra.get(name) or {}
    try:
        said = parsed(value) if isinstance(value, str) else value
    except ValueError as error:
        raise _invalid(connection, f"its extra {name} is not JSON") from error
    if not isinstance(said, dict):
        raise _invalid(connection, f"its extra {name} is not a JSON object")
    return said


def _invalid(connection: Connection, problem: str) -> InvalidArgument:
    return InvalidArgument(argument="source_conn_id", value=connection.conn_id, problem=problem)
