"""The source databases that a client knows: addresses by name, as values or as URLs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

from tidemark.errors import InvalidArgument
from tidemark.model.source_address import PORTS, SourceAddress

__all__ = ["address_in", "addresses_of", "hides", "parse_address"]

SHORTEST_SECRET = 5  # a shorter one would be found in too many texts
_OTHER_NAMES = {"postgres": "postgresql"}


def parse_address(url: str) -> SourceAddress:
    """`postgresql://user:password@host:port/database?sslmode=require`; special characters are percent-encoded.

    Raises InvalidArgument, without the password.
    """
    parts = urlsplit(url)
    kinds = {kind.value: kind for kind in PORTS}
    kind = kinds.get(_OTHER_NAMES.get(parts.scheme, parts.scheme))
    database = unquote(parts.path.removeprefix("/"))
    try:
        port = parts.port or (None if kind is None else PORTS.get(kind))
    except ValueError:
        port = None
    if kind is None or port is None or not database or not parts.username:
        problem = f"give kind://user:password@host:port/database, where kind is one of {', '.join(kinds)}"
        raise InvalidArgument(argument="source", value=parts.scheme, problem=problem)
    return SourceAddress(
        kind=kind,
        host=parts.hostname or "localhost",
        port=port,
        database=database,
        user=unquote(parts.username),
        password=None if parts.password is None else unquote(parts.password),
        parameters=dict(parse_qsl(parts.query)),
    )


def addresses_of(sources: Mapping[str, SourceAddress | str] | None) -> Mapping[str, SourceAddress]:
    """The addresses by name. Raises InvalidArgument."""
    given = (sources or {}).items()
    return {name: parse_address(one) if isinstance(one, str) else one for name, one in given}


def address_in(sources: Mapping[str, SourceAddress], source: str | SourceAddress) -> SourceAddress:
    """An address as it is, or the one of that name or URL. Raises InvalidArgument."""
    if isinstance(source, SourceAddress):
        return source
    if "://" in source:
        return parse_address(source)
    if source not in sources:
        known = ", ".join(sorted(sources)) or "none"
        problem = f"no source has this name; give its address in connect(sources={{…}}). These are known: {known}"
        raise InvalidArgument(argument="source", value=source, problem=problem)
    return sources[source]


def hides(sources: Mapping[str, SourceAddress]) -> Callable[[str], str]:
    """A function that takes the passwords and hash secrets of the sources out of a text."""
    every = (one for address in sources.values() for one in (address.password, address.hash_secret))
    secrets = {one for one in every if one is not None and len(one) >= SHORTEST_SECRET}

    def hide(text: str) -> str:
        for secret in sorted(secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text

    return hide
