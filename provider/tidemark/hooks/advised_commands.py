"""The commands of an advice, as they are typed for a connection."""

from __future__ import annotations

import json
from shlex import quote

from tidemark.control.object_kinds import Advice
from tidemark.hooks.tidemark import DEFAULT_CONN_ID

__all__ = ["commands_for"]

_TRIGGER, _CONF_ENDS = "airflow dags trigger ", "}'"


def commands_for(advice: Advice, conn_id: str) -> tuple[str, ...]:
    """The commands, with the connection if it is not the one that they take by themselves. A DAG that is triggered has
    it as its parameter `conn_id`.
    """
    if conn_id == DEFAULT_CONN_ID:
        return advice.commands
    return tuple(_on(command, conn_id) for command in advice.commands)


def _on(command: str, conn_id: str) -> str:
    if command.startswith(_TRIGGER):
        return f"{command.removesuffix(_CONF_ENDS)}, \"conn_id\": '{quote(json.dumps(conn_id))}'{_CONF_ENDS}"
    return f"{command} --conn-id {quote(conn_id)}" if command.startswith("airflow tidemark ") else command
