"""How a value is hidden: the same wherever it is done, so that events and copies of a row agree."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace

from tidemark.errors import InvalidArgument
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.replication import ReplicationOptions
from tidemark.replication.planning.events import TextOf

__all__ = [
    "MASK",
    "SHORTEST_SECRET",
    "another_secret",
    "hasher",
    "hasher_of",
    "mark_of",
    "marked",
    "pads_of",
    "require_secret",
]

MASK = "****"
"""Of every value that is masked."""
SHORTEST_SECRET = 16
_MARK = "tidemark"
_BLOCK = 64  # bytes of SHA-256


def pads_of(secret: str) -> tuple[str, str]:
    """The bytes that HMAC puts before the text and before the first hash, in hexadecimal digits. With them a source
    that has only SHA-256 makes the same hash. They tell the secret.
    """
    key = secret.encode()
    key = hashlib.sha256(key).digest() if len(key) > _BLOCK else key
    key = key.ljust(_BLOCK, b"\0")
    return bytes(one ^ 0x36 for one in key).hex(), bytes(one ^ 0x5C for one in key).hex()


def hasher(secret: str) -> TextOf:
    """The hash of a canonical text: its HMAC-SHA256 under the secret, in 64 hexadecimal digits."""
    key = secret.encode()

    def hashed(text: str) -> str:
        return hmac.digest(key, text.encode(), "sha256").hex()

    return hashed


def hasher_of(options: ReplicationOptions, address: SourceAddress) -> TextOf | None:
    """By the secret of the connection; None where nothing is hashed. Raises InvalidArgument."""
    if not options.hash_columns:
        return None
    return hasher(require_secret(address.hash_secret, options.hash_mark, why="hash_columns"))


def mark_of(secret: str) -> str:
    """By which another secret is noticed; it does not tell the secret."""
    return hasher(secret)(_MARK)[:16]


def marked(options: ReplicationOptions, address: SourceAddress) -> ReplicationOptions:
    """With the mark of the connection's secret, if anything is hashed. Raises InvalidArgument."""
    if not options.hash_columns:
        return options
    return replace(options, hash_mark=mark_of(require_secret(address.hash_secret, None, why="hash_columns")))


def require_secret(secret: str | None, mark: str | None, *, why: str) -> str:
    """The secret. `mark`: of the secret that hashed the stored values; None: of none. `why`: what needs it, for the
    error. Raises InvalidArgument where there is none, it is short, or another.
    """
    if not secret:
        raise _invalid(
            f"{why} needs a secret, and the connection of the source has none. Give it the extra "
            f'"hash_secret", of {SHORTEST_SECRET} characters at least'
        )
    if len(secret) < SHORTEST_SECRET:
        raise _invalid(f"the secret for {why} has {len(secret)} characters: give it {SHORTEST_SECRET} at least")
    if mark not in (None, mark_of(secret)):
        raise another_secret(why)
    return secret


def another_secret(why: str) -> InvalidArgument:
    """The error for a secret that changed."""
    return _invalid(
        f"the secret for {why} has changed since the replication was created, so that equal values would have other"
        " hashes. Restore the old one, or drop and recreate the replication"
    )


def _invalid(problem: str) -> InvalidArgument:
    return InvalidArgument(argument="hash_secret", value="***", problem=problem)
