"""Names of channels and of columns in rows: without case, or exact in double quotes."""

from __future__ import annotations

from tidemark.channels.model.channels import DOMAIN_PREFIX
from tidemark.errors import InvalidArgument

__all__ = ["channel_of_domain", "domain_of", "folded", "key_of"]

_LONGEST = 255


def key_of(name: str) -> str:
    """The identity of a channel: in upper case, or as it is in double quotes. Raises InvalidArgument."""
    key = folded(name)
    if not key or len(key) > _LONGEST or not key.isprintable():
        problem = f"a channel's name has 1 to {_LONGEST} printable characters"
        raise InvalidArgument(argument="channel", value=name, problem=problem)
    return key


def folded(name: str) -> str:
    """A name in upper case; the text between double quotes as it is, with `""` for one quote."""
    if len(name) >= 2 and name[0] == name[-1] == '"':
        return name[1:-1].replace('""', '"')
    return name.upper()


def domain_of(key: str) -> str:
    """The domain of a channel's record."""
    return DOMAIN_PREFIX + key


def channel_of_domain(domain: str) -> str | None:
    """The channel whose record a domain has; None for a domain of anybody else."""
    return domain[len(DOMAIN_PREFIX) :] if domain.startswith(DOMAIN_PREFIX) else None
