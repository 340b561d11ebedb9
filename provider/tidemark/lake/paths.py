"""URIs, absolute paths and relative ones, told apart by their texts.

Paths in a log are percent-encoded URIs, relative to the table or absolute (Delta protocol, "Add File").
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

__all__ = ["file_uri", "is_absolute", "is_uri"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_PLAIN = "/!$&'()*+,;=:@~"


def is_uri(text: str) -> bool:
    """Whether the text begins with a scheme and a slash. Without the slash, it is the name of a file with a colon."""
    return _SCHEME.match(text) is not None


def is_absolute(path: str) -> bool:
    """Whether the path or URI is the same place in every working directory."""
    return path.startswith("/") or is_uri(path)


def file_uri(table_uri: str, action_path: str) -> str:
    """The percent-encoded absolute URI of a file of the table at the canonical `table_uri`. Absolute paths are kept."""
    if action_path.startswith("/"):
        return "file://" + action_path
    if is_uri(action_path):
        return action_path
    scheme, root = table_uri.split("://", 1)
    return f"{scheme}://{quote(root + '/' + unquote(action_path), safe=_PLAIN)}"
