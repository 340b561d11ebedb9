"""Files that cannot be read: by Spark's errors, and by those of opening, unpacking and reading a file here."""

from __future__ import annotations

import csv
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO
from urllib.parse import unquote

import pyarrow as pa

from tidemark.errors import DataFileUnreadable, JobFailed, NotAFile, StorageRefused, StorageUnreachable
from tidemark.jobs.failures import named_failure
from tidemark.lake.storage import Storage

__all__ = ["GONE", "broken_file", "may_be_of_a_file", "opened", "reason_of", "spark_name"]

GONE = "it no longer exists"
_NOT_FOUND = "[PATH_NOT_FOUND] Path does not exist: "
_AWAY = re.compile(  # network, disk and processes
    r"java\.net\.(?!URI|Malformed)|javax\.net\.ssl|SocketTimeout|ConnectTimeout|PoolTimeout|NoHttpResponse|SdkClientException"
    r"|Connection reset|SlowDown|No space left on device|Too many open files|OutOfMemoryError|ExecutorLost"
)
_NOT_OF_A_FILE = re.compile(  # keys and the target
    r"AccessDenied|InvalidAccessKey|SignatureDoesNotMatch|Forbidden|NoAuth|Credentials|\[DELTA_"
)

_OF_CODECS: tuple[type[Exception], ...] = (EOFError, zlib.error, lzma.LZMAError)
try:
    from zstandard import ZstdError
except ImportError:  # then no file of it is unpacked
    pass
else:
    _OF_CODECS = (*_OF_CODECS, ZstdError)
_OF_FILES = (OSError, NotAFile, StorageRefused, ValueError, csv.Error, pa.ArrowException, *_OF_CODECS)


@contextmanager
def opened(storage: Storage, file: str) -> Iterator[IO[bytes]]:
    """The open file. Errors of the block that say that it is broken are DataFileUnreadable.

    A file is broken if it is gone, is no file, is refused by the storage, or has damaged content. A storage that does
    not answer says nothing about the file: StorageUnreachable.
    """
    try:
        with storage.open(file) as content:
            yield content
    except StorageUnreachable:
        raise
    except _OF_FILES as error:
        raise DataFileUnreadable(file=f"{storage.uri}/{file}", problem=_problem(error)) from error


def _problem(error: Exception) -> str:
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return GONE
    if isinstance(error, (NotAFile, StorageRefused)):
        return str(error.facts["problem"])
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def spark_name(location: str, file: str) -> str:
    """A file's path as Spark's readers show it, decoded."""
    whole = f"{location}/{file}"
    return "file:" + whole.removeprefix("file://") if whole.startswith("file:///") else whole


def broken_file(error: Exception, location: str, files: Iterable[str]) -> tuple[str, str] | None:
    """The file that the failure names, with the reason. None if it names none of these, or blames the storage."""
    named, text = named_failure(error), str(error)
    if isinstance(error, DataFileUnreadable):
        place, problem = error.facts["file"], error.facts["problem"]
    elif isinstance(named, DataFileUnreadable):
        place, problem = unquote(named.facts["file"]), named.facts["problem"]
    elif _NOT_FOUND in text:
        place, problem = text.split(_NOT_FOUND, 1)[1].split(". SQLSTATE")[0], GONE
    else:
        return None
    if _AWAY.search(problem):
        return None
    for file in files:
        if place in (spark_name(location, file), f"{location}/{file}"):
            return file, problem
    return None


def may_be_of_a_file(error: Exception) -> bool:
    """Whether a failure that names no file may be due to one. A storage, a key, a target or a package are no file."""
    named = named_failure(error)
    said = reason_of(error)
    is_open = isinstance(named, (JobFailed, DataFileUnreadable))
    return is_open and _AWAY.search(said) is None and _NOT_OF_A_FILE.search(said) is None


def reason_of(error: Exception) -> str:
    """The failure in Spark's words, with its deepest cause."""
    facts = named_failure(error).facts
    return str(facts.get("message") or facts.get("problem") or error)
