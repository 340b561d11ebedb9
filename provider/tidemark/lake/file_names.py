"""Which of the files below a directory are meant: by the one rule of hidden names, a prefix and a pattern."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

from tidemark.errors import InvalidArgument

__all__ = ["HIDDEN", "FileFilter", "is_hidden", "matches"]

HIDDEN = ("_", ".")  # what Spark does not read either; `_tidemark` and `_delta_log` among them
_COPYING = "._COPYING_"  # the end of a name while Hadoop copies the file
_WILD = re.compile(r"[*?\[]")


def is_hidden(name: str) -> bool:
    """Whether a file is hidden, by its own name or by that of a directory above it."""
    return any(part.startswith(HIDDEN) or part.endswith(_COPYING) for part in name.split("/"))


def matches(name: str, glob: str | None) -> bool:
    """Whether a file that is not hidden matches the shell pattern; `*` matches slashes, too."""
    return not is_hidden(name) and (glob is None or fnmatchcase(name, glob))


@dataclass(frozen=True)
class FileFilter:
    """Files whose name begins with `prefix` and matches `glob`, or `regex` as a whole. Hidden files never do.

    Names are relative to the directory that is listed. `*` in a glob and `.` in a regular expression match every
    character, slashes and newlines too. Raises InvalidArgument for a regular expression that is none, and for both
    patterns at once.
    """

    prefix: str = ""
    glob: str | None = None
    regex: str | None = None

    def __post_init__(self) -> None:
        if self.glob is not None and self.regex is not None:
            raise InvalidArgument(argument="regex", value=self.regex, problem="give glob or regex, not both")
        try:
            _ = self._whole
        except re.error as error:
            problem = f"it is not a regular expression: {error}"
            raise InvalidArgument(argument="regex", value=self.regex, problem=problem) from error

    def accepts(self, name: str) -> bool:
        """Whether the file is meant."""
        if not name.startswith(self.prefix) or not matches(name, self.glob):
            return False
        return self._whole is None or self._whole.fullmatch(name) is not None

    def may_hold(self, directory: str) -> bool:
        """Whether a file that is meant may be below `directory`, whose name ends with a slash."""
        if is_hidden(directory.rstrip("/")):
            return False
        return directory.startswith(self.beginning) or self.beginning.startswith(directory)

    @cached_property
    def beginning(self) -> str:
        """The longest known text with which the names of all files that are meant begin."""
        literal = "" if self.glob is None else _WILD.split(self.glob, maxsplit=1)[0]
        return max(self.prefix, literal, key=len)

    @cached_property
    def _whole(self) -> re.Pattern[str] | None:
        return None if self.regex is None else re.compile(self.regex, re.DOTALL)
