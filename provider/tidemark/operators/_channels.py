"""Arguments that operators of channels share."""

from __future__ import annotations

__all__ = ["channel_of"]


def channel_of(argument: str, value: str) -> str:
    """The channel's name as it was given, with the quotes of an exact one. Raises InvalidArgument."""
    from tidemark.channels.planning.names import key_of

    key_of(value if isinstance(value, str) else "")
    return value
