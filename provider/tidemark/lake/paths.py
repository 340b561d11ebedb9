"""Paths in a log are percent-encoded URIs, relative to the table or absolute (Delta protocol, "Add File")."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

__all__ = ["file_uri", "is_absolute"]

_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:/")
_PLAIN = "/!$&'()*+,;=:@~"


def is_absolute(action_path: str) -> bool:
    """Whether the path is absolute, as in shallow clones and converted tables."""
    return action_path.startswith("/") or _SCHEME.match(action_path) is not None


def file_uri(table_uri: str, action_path: str) -> str:
    """The percent-encoded absolute URI of a file of the table at the canonical `table_uri`. Absolute paths are kept."""
    if action_path.startswith("/"):
        return "file://" + action_path
    if is_absolute(action_path):
        return action_path
    scheme, root = table_uri.split("://", 1)
    return f"{scheme}://{quote(root + '/' + unquote(action_path), safe=_PLAIN)}"
