"""Refusals of the ingest service that its Python client raises as a client does that commits by itself."""

from __future__ import annotations

from typing import Any

from tidemark.errors import (
    ChannelHasUncommittedRows,
    ChannelInvalid,
    ChannelTokenLost,
    RowsRefused,
    TableNotSupported,
    TidemarkError,
    TokenOutOfOrder,
)

__all__ = ["facts_to_send", "refusal_of"]

_KINDS: dict[str, type[TidemarkError]] = {
    kind.__name__: kind
    for kind in (
        RowsRefused, ChannelInvalid, ChannelTokenLost, ChannelHasUncommittedRows, TableNotSupported, TokenOutOfOrder,
    )
}  # fmt: skip


def facts_to_send(error: TidemarkError) -> dict[str, Any]:
    """The values of the error's message, if a client raises it as the same error; none else."""
    return dict(error.facts) if type(error).__name__ in _KINDS else {}


def refusal_of(name: Any, facts: Any) -> TidemarkError | None:
    """The error of an answer; None if it has not all values of that error's message."""
    kind = _KINDS.get(str(name))
    if kind is None or not isinstance(facts, dict):
        return None
    try:
        return kind(**{str(fact): value for fact, value in facts.items()})
    except KeyError:
        return None
