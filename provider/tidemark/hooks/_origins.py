"""The origin of a setting: the connection, the environment, Airflow's configuration, or the default."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidemark.errors import InvalidArgument, StoreUrlInvalid

__all__ = ["ConnectionExtra", "refuse_other_type", "with_origin"]


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
