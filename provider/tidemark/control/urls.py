"""The control store's URL, parsed once. A URL that cannot be a store is an error, and no password is ever shown."""

from __future__ import annotations

import re

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from tidemark.errors import StoreUrlInvalid

__all__ = ["SQLITE", "parse_url", "shown"]

SQLITE = "sqlite"
POSTGRESQL = "postgresql"
DRIVERS = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
}  # accepted name → driver
FORM = "postgresql+psycopg://user@host:5432/database, or sqlite:////absolute/path.db"
PARTS = "percent-encode @ : / ? # % in user and password, or put them into fields of their own"
SECRET = re.compile(r"password|passwd|secret|token", re.IGNORECASE)


def parse_url(text: str, *, password: str | None = None) -> sa.URL:
    """The URL of a store, with `password` in it if one is given.

    Raises StoreUrlInvalid for a text that is no URL, and for an untested database or driver. Raises it even if the host
    or port shows that a password was not encoded. Its message has no part of the password.
    """
    try:
        url = sa.make_url(text.strip())
        if not 0 < (url.port or 1) < 65536:
            raise ValueError
    except (ArgumentError, ValueError):  # their words may have a part of a password
        problem = f"it is not a URL, or its port is not a number from 1 to 65535; {PARTS}. The form is {FORM}"
        raise StoreUrlInvalid(url=_scheme(text), problem=problem) from None
    driver = DRIVERS.get(url.drivername)
    if driver is None:
        problem = f"{url.drivername!r} is not supported. The form is {FORM}"
        raise StoreUrlInvalid(url=_scheme(text), problem=problem)
    if driver == SQLITE and url.database not in (None, "", ":memory:"):
        return url.set(drivername=driver)
    if driver == SQLITE:
        problem = "a database in memory is lost at once; name a file, such as sqlite:////absolute/path.db"
        raise StoreUrlInvalid(url=_scheme(text), problem=problem)
    if "@" in f"{url.host}{url.database}":
        raise StoreUrlInvalid(url=_scheme(text), problem=f"its host or database has an @ in it; {PARTS}")
    if not url.database:
        raise StoreUrlInvalid(url=shown(url), problem=f"it names no database. The form is {FORM}")
    return url.set(drivername=driver, password=password or url.password)


def shown(url: sa.URL) -> str:
    """The URL for logs and errors, without its password and other secrets."""
    masked = {name: "***" for name in url.query if SECRET.search(name)}
    return url.update_query_dict(masked).render_as_string(hide_password=True)


def _scheme(text: str) -> str:
    """The scheme, which is all that may be shown of a text that is no URL."""
    scheme, found, _ = text.strip().partition("://")
    return f"{scheme}://…" if found and re.fullmatch(r"[\w+]+", scheme) else "…"
