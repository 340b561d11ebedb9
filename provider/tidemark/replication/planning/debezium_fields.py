"""Fields of an envelope's schema: as Kafka Connect writes them in JSON, and as its Avro converter does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Field", "fields_of_avro", "fields_of_connect"]

_CONNECT_OF_AVRO = {"int": "int32", "long": "int64", "float": "float", "double": "double", "boolean": "boolean"}
_LOGICAL = {
    "decimal": "org.apache.kafka.connect.data.Decimal",
    "date": "org.apache.kafka.connect.data.Date",
    "time-millis": "org.apache.kafka.connect.data.Time",
    "timestamp-millis": "org.apache.kafka.connect.data.Timestamp",
}


@dataclass(frozen=True)
class Field:
    """A column of a row. `kind`: the type in Connect's words (int8 … bytes, array, map, struct). `semantic`: the name
    that says what the values mean. `default`: the value that the database gives, if `has_default`. `item`: of an array.
    """

    name: str
    kind: str
    semantic: str | None = None
    optional: bool = True
    parameters: Mapping[str, str] = field(default_factory=dict)
    default: Any = None
    has_default: bool = False
    item: Field | None = None

    @property
    def source_type(self) -> str:
        """The database's own name of the type, upper case; "" unless Debezium was asked to propagate it."""
        return str(self.parameters.get("__debezium.source.column.type", "")).upper()


def fields_of_connect(struct: Mapping[str, Any]) -> tuple[Field, ...]:
    """The fields of a struct. Raises ValueError for what is no struct of Connect."""
    listed = struct.get("fields")
    if struct.get("type") != "struct" or not isinstance(listed, list):
        raise ValueError("the schema of a row is not a struct")
    return tuple(_of_connect(one, str(one["field"])) for one in listed)


def _of_connect(one: Mapping[str, Any], name: str) -> Field:
    items = one.get("items")
    return Field(
        name=name,
        kind=str(one["type"]),
        semantic=one.get("name"),
        optional=bool(one.get("optional", False)),
        parameters=one.get("parameters") or {},
        default=one.get("default"),
        has_default="default" in one,
        item=_of_connect(items, "") if isinstance(items, Mapping) else None,
    )


def fields_of_avro(record: Mapping[str, Any], named: Mapping[str, Mapping[str, Any]]) -> tuple[Field, ...]:
    """The fields of a record; `named`: the named types of its file. Raises ValueError for what is no record."""
    listed = record.get("fields")
    if record.get("type") != "record" or not isinstance(listed, list):
        raise ValueError("the schema of a row is not a record")
    return tuple(_of_avro(one["type"], one, named) for one in listed)


def _of_avro(kind: Any, of: Mapping[str, Any], named: Mapping[str, Mapping[str, Any]]) -> Field:
    branches = kind if isinstance(kind, list) else [kind]
    optional = "null" in branches
    others = [one for one in branches if one != "null"]
    if len(others) != 1:
        raise ValueError(f"field {of.get('name')} has a union of several types")
    (only,) = others
    if isinstance(only, str) and only in named:
        only = named[only]
    facts: Mapping[str, Any] = only if isinstance(only, Mapping) else {}
    plain = str(facts.get("type", only))
    if isinstance(only, Mapping) and isinstance(facts.get("type"), Mapping):
        facts = {**facts["type"], **{name: value for name, value in facts.items() if name != "type"}}
        plain = str(facts["type"])
    parameters = {**facts.get("connect.parameters", {}), **_decimal_of(facts)}
    default = of.get("default")
    return Field(
        name=str(of.get("name", "")),
        kind=facts.get("connect.type") or _CONNECT_OF_AVRO.get(plain, _structured(plain)),
        semantic=facts.get("connect.name") or _LOGICAL.get(str(facts.get("logicalType"))),
        optional=optional,
        parameters=parameters,
        default=facts.get("connect.default", default),
        has_default="connect.default" in facts or default is not None,
        item=_of_avro(facts["items"], {}, named) if plain == "array" else None,
    )


def _decimal_of(facts: Mapping[str, Any]) -> Mapping[str, str]:
    said: Sequence[tuple[str, str]] = (("scale", "scale"), ("precision", "connect.decimal.precision"))
    return {name: str(facts[of]) for of, name in said if of in facts and facts.get("logicalType") == "decimal"}


def _structured(plain: str) -> str:
    return {"record": "struct", "enum": "string", "fixed": "bytes"}.get(plain, plain)
