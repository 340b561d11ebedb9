"""Places of files that a statement or a stage may name."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from tidemark.errors import InvalidArgument
from tidemark.lake.paths import is_absolute

__all__ = ["require_location"]

_PASSWORD = re.compile(r"://[^:/@]*:(.+)@")


def require_location(location: str, argument: str = "location") -> None:
    """Nothing for a URI or an absolute path of a directory. Raises InvalidArgument for others, and for one with a
    password, whose value it does not show.
    """
    if _PASSWORD.search(location) and urlsplit(location).password:
        problem = "a place must not have a password; put it into the connection's storage options"
        raise InvalidArgument(argument=argument, value="(not shown)", problem=problem)
    if not is_absolute(location) or not location.isprintable():
        problem = "give the URI of a directory or bucket, such as s3://bucket/dir/, or an absolute path"
        raise InvalidArgument(argument=argument, value=location, problem=problem)
