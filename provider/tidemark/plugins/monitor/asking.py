"""The common parts of all routes: bounded arguments, the gate of a connection, and refusals."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, HTTPException, Query

from tidemark.control.cursors import Part
from tidemark.control.object_kinds import KINDS
from tidemark.plugins.monitor.connections import connection_ids
from tidemark.plugins.monitor.gate import Gate, Gates

__all__ = ["API", "NO_NUL", "AskedPart", "Connection", "Cursor", "Kind", "Limit", "Text", "gate_to", "refusals"]

API = "/api/v1"
NO_NUL = r"^[^\x00]*$"  # PostgreSQL has no such character

Kind = Annotated[str | None, Query(pattern=f"^({'|'.join(KINDS)})$", description=f"One of {', '.join(KINDS)}.")]
Text = Annotated[str, Query(max_length=500, pattern=NO_NUL)]
Limit = Annotated[int, Query(ge=1, le=200)]
Connection = Annotated[str | None, Query(max_length=250, description="A Tidemark connection that is monitored.")]
Cursor = Annotated[
    str | None, Query(max_length=4000, description="The cursor of the part before, for the part that follows it.")
]
Offset = Annotated[int, Query(ge=0, le=10_000_000, description="How many of the first are left out.")]


def _asked_part(limit: Limit = 50, offset: Offset = 0, cursor: Cursor = None) -> Part:
    return Part(limit, offset, cursor)


AskedPart = Annotated[Part, Depends(_asked_part)]


def gate_to(gates: Gates, connection: str | None) -> Gate:
    """The gate of that connection, or of the first one. Raises HTTPException 404."""
    known = connection_ids()
    if connection is not None and connection not in known:
        raise HTTPException(404, "This connection is not among those of [tidemark] monitor_conn_ids.")
    return gates.to(connection or known[0])


def refusals(what: str) -> dict[int | str, dict[str, Any]]:
    """The schema's entries for answers that are errors."""
    return {
        401: {"description": "Nobody is logged in"},
        403: {"description": "The caller lacks the right"},
        404: {"description": f"No such {what}"},
        503: {"description": "The store cannot be read"},
    }
