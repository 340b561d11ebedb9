"""The origin of a setting: the connection, the environment, Airflow's configuration, or the default."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from tidemark.errors import InvalidArgument, StoreUrlInvalid
from tidemark.model.foreign_json import parsed
from tidemark.provider_info import get_provider_info
from tidemark.sql.alike import alike

if TYPE_CHECKING:
    from airflow.sdk import Connection

__all__ = ["ConnectionExtra", "extra_of", "refuse_other_type", "warn_of_unknown", "with_origin"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ConnectionExtra:
    """The extra of a connection. `there` is False if the default connection does not exist, which it need not."""

    conn_id: str
    extra: Mapping[str, Any]
    password: str | None = None
    there: bool = True

    def origin(self, name: str, options: Mapping[str, str]) -> str:
        """The origin of the setting `name`, in words."""
        if name == "AIRFLOW_HOME":
            return "from the environment variable AIRFLOW_HOME"
        if self.extra.get(name):
            return f"from the connection {self.conn_id!r}"
        if os.environ.get(variable := f"TIDEMARK_{name.upper()}"):
            return f"from the environment variable {variable}"
        if os.environ.get(variable := f"AIRFLOW__TIDEMARK__{name.upper()}"):
            return f"from the environment variable {variable}"
        if options.get(name):
            return f"from Airflow's configuration, [tidemark] {name}"
        said = "does not set it" if self.there else "does not exist"
        return f"the default: the connection {self.conn_id!r} {said}"


def refuse_other_type(conn_id: str, actual: str | None, wanted: str) -> None:
    """Nothing, or InvalidArgument if the connection has another type: it would be read as the defaults."""
    if actual != wanted:
        problem = (
            f"the connection has {f'the type {actual!r}' if actual else 'no type'}, not {wanted!r}. Set its type to "
            f"{wanted}, or name another connection by conn_id"
        )
        raise InvalidArgument(argument="conn_id", value=conn_id, problem=problem)


def with_origin(
    error: InvalidArgument | StoreUrlInvalid, extra: ConnectionExtra, options: Mapping[str, str]
) -> InvalidArgument | StoreUrlInvalid:
    """The same error with the connection and the value's origin."""
    argument = error.facts.get("argument", "control_store")
    problem = f"{str(error.facts['problem']).rstrip('.')} ({extra.origin(argument, options)})"
    return type(error)(**{**error.facts, "problem": problem})


def extra_of(connection: Connection) -> Mapping[str, Any]:
    """The extra of the connection. Airflow takes one that it cannot read for an empty one, so it would be read as the
    defaults. Raises InvalidArgument for one that is no JSON object.
    """
    text = (connection.extra or "").strip()
    if not text:
        return {}
    try:
        readable = isinstance(parsed(text), dict)
    except ValueError:
        readable = False
    if not readable:
        problem = f"the extra of the connection {connection.conn_id!r} must be a JSON object; it cannot be read"
        raise InvalidArgument(argument="extra", value="(not shown)", problem=problem)
    return connection.extra_dejson  # and Airflow masks its secrets


@cache
def warn_of_unknown(conn_id: str, names: frozenset[str]) -> None:
    """Warn of those of the `names` that are no setting, with similar ones; once in a process."""
    info: Any = get_provider_info()
    known = info["connection-types"][0]["conn-fields"]
    for name in sorted(names - set(known)):
        near = "".join(f" Did you mean {one!r}?" for one in alike(name, known)[:1])
        log.warning(
            "The extra %r of the connection %r is no setting of Tidemark, and is ignored.%s", name, conn_id, near
        )
