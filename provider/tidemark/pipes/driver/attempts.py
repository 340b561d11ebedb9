"""Attempts to read files: those that cannot be read are found, and left out by the next attempt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tidemark.errors import DataFileUnreadable
from tidemark.jobs.spark_failures import SPARK_FAILURES
from tidemark.pipes.driver.prepare import FileToLoad, Preparation
from tidemark.pipes.driver.unreadable import broken_file, may_be_of_a_file

__all__ = ["Attempts"]

_READ_FAILURES: tuple[type[Exception], ...] = (*SPARK_FAILURES, DataFileUnreadable)
_ATTEMPTS_BEFORE_HALVES = 2

Read = TypeVar("Read")


@dataclass(frozen=True)
class Attempts:
    """Attempts to read the files of one load. `what`: they are, in the log."""

    what: str
    location: str
    preparation: Callable[[], Preparation]
    say: Callable[[str], None]

    def until_read(self, files: Sequence[FileToLoad], attempt: Callable[[Mapping[str, str]], Read]) -> Read:
        """The answer of the attempt that reads all but the files that it is given, with the reason. Others found those.

        Raises what the attempt raises for failures that are not of a file.
        """
        unread: dict[str, str] = {}
        attempts = 0
        while True:
            try:
                return attempt(unread)
            except _READ_FAILURES as error:
                attempts += 1
                found = self._broken([file for file in files if file.name not in unread], error, attempts)
                if not found:
                    raise
                unread.update(found)

    def _broken(self, files: Sequence[FileToLoad], error: Exception, attempts: int) -> Mapping[str, str]:
        """The files that make the attempt fail, with the reason; none if it is not due to a file.

        An error that names no file, and a further one that does, are looked into by reads of halves.
        """
        named = broken_file(error, self.location, [file.name for file in files])
        if named is not None and attempts < _ATTEMPTS_BEFORE_HALVES:
            return dict([named])
        if named is None and not may_be_of_a_file(error):
            return {}
        broken = {} if named is None else dict([named])
        self.say(f"{self.what}: looking for files that cannot be read, by halves of {len(files)}")
        left = [file for file in files if file.name not in broken]
        return {**broken, **self.preparation().broken(left)}
