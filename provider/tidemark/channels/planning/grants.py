"""Decisions about the tokens of the ingest service."""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime
from fnmatch import fnmatchcase

from tidemark.channels.model.grants import Grant, Grants
from tidemark.errors import InvalidArgument

__all__ = ["allows", "allows_pipe", "digest_of", "grant_for", "with_grant", "without_grant"]


def digest_of(token: str) -> str:
    """The form in which a token is kept. Tokens are random, so a plain hash is enough."""
    return hashlib.sha256(token.encode()).hexdigest()


def with_grant(
    grants: Grants, name: str, token: str, tables: tuple[str, ...], now: datetime, pipes: tuple[str, ...] = ()
) -> Grants:
    """The tokens with a new one, in place of an earlier one of that name. Raises InvalidArgument."""
    if not name.strip() or not name.isprintable():
        raise InvalidArgument(argument="name", value=name, problem="a token needs a printable name")
    if not tables and not pipes:
        problem = "name the tables that it may write, or pipes that it may use, such as db.*"
        raise InvalidArgument(argument="table", value="", problem=problem)
    kept = without_grant(grants, name).grants
    return Grants((*kept, Grant(name, digest_of(token), tables, now, pipes)))


def without_grant(grants: Grants, name: str) -> Grants:
    """The tokens without that of a name."""
    return Grants(tuple(grant for grant in grants.grants if grant.name != name))


def grant_for(grants: Grants, token: str) -> Grant | None:
    """The grant of a token; None for a foreign one. It takes as long for each."""
    digest = digest_of(token)
    found = [grant for grant in grants.grants if hmac.compare_digest(grant.digest, digest)]
    return found[0] if found else None


def allows(grant: Grant, table: str) -> bool:
    """Whether a token may write a table. Names have no case; `*` is any text without a point, but not none."""
    return _fits(table, grant.tables)


def allows_pipe(grant: Grant, pipe: str) -> bool:
    """Whether a token may use a pipe; as for tables. Quotes of the name do not count."""
    return _fits(pipe.replace('"', "").replace("`", ""), grant.pipes)


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    parts = name.lower().split(".")
    if not all(part.strip() for part in parts):  # `db.` is a spelling of db, which is not below db
        return False
    split = (pattern.lower().split(".") for pattern in patterns)
    return any(len(one) == len(parts) and all(map(fnmatchcase, parts, one)) for one in split)
