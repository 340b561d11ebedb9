"""Bytes and names below one root, by fsspec, and the canonical form of a table's location."""

from __future__ import annotations

import errno
import os
import stat
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import IO, Any, NamedTuple
from urllib.parse import unquote, urlsplit

import fsspec

from tidemark.errors import NotAFile
from tidemark.lake.failures import storage_errors_named
from tidemark.lake.paths import is_uri

__all__ = [
    "MOST_BYTES",
    "Storage",
    "StoredFile",
    "canonical_uri",
    "described",
    "file_system_of",
    "listed_time",
    "problem_of",
]

MOST_BYTES = 1 << 30  # read at once

_ONE_NAME = {"s3a": "s3", "s3n": "s3"}
_TIME_KEYS = ("mtime", "LastModified", "last_modified", "updated")  # local and sftp, s3, abfs, gcs
_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)
_NO_NAMES = (errno.ENAMETOOLONG, errno.ELOOP)  # a disk has no file of such a name
_ETAG_KEYS = ("ETag", "etag")  # s3; abfs and gcs
_VERSION_KEYS = ("VersionId", "version_id", "generation")  # s3, abfs, gcs


class StoredFile(NamedTuple):
    """A file in a listing. `etag`: the storage's mark of its content, `version` that of its state; both
    are empty if it has none. `problem`: the reason not to open it, if it is a pipe or a device.
    """

    name: str
    size: int
    modified_at: datetime
    etag: str
    problem: str | None = None
    version: str = ""


def canonical_uri(location: str) -> str:
    """One text for each place: `file:///tmp/a b`, `s3://bucket/key`; not percent-encoded, no slash at the end.

    Accepts `/p`, `p` (from the working directory), `file:/p`, `file:///p` and other schemes; `s3a` and `s3n`, Hadoop's
    names for S3, are `s3`.
    """
    if not is_uri(location):
        return "file://" + _without_last_slash(os.path.abspath(location))
    scheme, rest = location.split(":", 1)
    if scheme.lower() == "file":
        return "file://" + _without_last_slash(str(PurePosixPath("/" + rest.lstrip("/"))))
    if not rest.startswith("//"):
        rest = "//" + rest.lstrip("/")
    return _without_last_slash(f"{_ONE_NAME.get(scheme.lower(), scheme.lower())}:{rest}")


def file_system_of(uri: str, options: Mapping[str, Any]) -> Any:
    """The file system of fsspec for a URI, such as the HDFS whose host and port the URI names. Options count before
    the URI.
    """
    scheme, authority = urlsplit(uri)[:2]
    named = fsspec.get_filesystem_class(scheme)._get_kwargs_from_urls(f"{scheme}://{authority}/")
    return fsspec.filesystem(scheme, **{**named, **options})


def _to_millis(time: datetime | float) -> datetime:
    """The time in whole milliseconds, as Delta has it. A finer time would be after the one that its history shows."""
    aware = time if isinstance(time, datetime) else datetime.fromtimestamp(time, UTC)
    aware = aware.astimezone(UTC) if aware.tzinfo else aware.replace(tzinfo=UTC)
    return aware.replace(microsecond=aware.microsecond // 1000 * 1000)


def listed_time(entry: Mapping[str, Any]) -> datetime | None:
    """The modification time in a file's entry of a listing; None if the entry has none."""
    time = next((entry[key] for key in _TIME_KEYS if entry.get(key) is not None), None)
    return None if time is None else _to_millis(time)


def described(name: str, entry: Mapping[str, Any], modified_at: datetime, problem: str | None = None) -> StoredFile:
    """A file as its entry in a listing shows it, for an entry of any storage."""
    etag, version = (
        next((str(entry[key]).strip('"') for key in keys if entry.get(key)), "") for keys in (_ETAG_KEYS, _VERSION_KEYS)
    )
    return StoredFile(name, int(entry.get("size") or entry.get("Size") or 0), modified_at, etag, problem, version)


def problem_of(mode: int) -> str | None:
    """The problem with opening something of that mode, as a local file system gives it; None for a file."""
    if stat.S_ISREG(mode):
        return None
    return f"it is {next((name for is_one, name in _KINDS if is_one(mode)), 'of no known kind')}"


def _no_file(entry: Mapping[str, Any]) -> str | None:
    """The reason not to open an entry of a file system. None for a file, and for a directory, which fails at once."""
    if entry.get("type") != "other":
        return None
    return problem_of(int(entry.get("mode") or 0))


def _without_last_slash(path: str) -> str:
    return path.rstrip("/") or "/"


class Storage:
    """Files below the directory `uri`. Names are relative and not percent-encoded, or absolute URIs, percent-encoded as
    in a log.

    `options` are those of fsspec's file system. Nothing is cached, so every commit is seen. A missing file raises
    FileNotFoundError; other failures raise StorageRefused or StorageUnreachable, after the retries of the storage's own
    client.

    Only files are opened: a pipe would wait for its writer for ever, a device may never end. Others raise NotAFile.
    """

    def __init__(self, uri: str, options: Mapping[str, Any] | None = None) -> None:
        self.uri = canonical_uri(uri)
        self.is_local = self.uri.startswith("file://")
        self.options = dict(options or {})
        given = dict(self.options)
        if not self.is_local:
            given.setdefault("use_listings_cache", False)
        with storage_errors_named(self.uri):
            self._filesystem = file_system_of(self.uri, given)
        self._root = self.uri.removeprefix("file://") if self.is_local else self.uri

    def file_system(self) -> tuple[Any, str]:
        """The file system of fsspec and this directory's path in it, for who lists by pages."""
        return self._filesystem, self._root

    def names(self, directory: str = "") -> list[str]:
        """The names directly below `directory`, sorted. Raises FileNotFoundError."""
        with storage_errors_named(self._uri_of(directory)):
            listed = self._filesystem.ls(self._below(directory), detail=False, **self._fresh())
        return sorted(str(entry).rstrip("/").rsplit("/", 1)[-1] for entry in listed)

    def exists(self, name: str = "") -> bool:
        """Whether a file or directory exists. A storage that does not answer is an error, not a no."""
        return self._info(name) is not None

    def size(self, name: str) -> int | None:
        """The size of a file in bytes; None if it does not exist or is a directory. Raises NotAFile."""
        found = self._info(name)
        if found is None or found.get("type") == "directory":
            return None
        if (problem := _no_file(found)) is not None:
            raise NotAFile(path=self._uri_of(name), problem=problem)
        return int(found.get("size") or 0)

    def read_bytes(self, name: str, start: int | None = None, end: int | None = None) -> bytes:
        """The bytes of a file, or of its range [start, end). Without an end at most MOST_BYTES, as a sparse file may be
        larger than its disk, and an object than the memory. Raises NotAFile.
        """
        with storage_errors_named(self._uri_of(name)):
            if self.is_local:
                self._require_readable(name, whole=end is None)
            elif end is None:
                return self._at_most(name, start or 0)
            return bytes(self._filesystem.cat_file(self._below(name), start=start, end=end))

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """A file for random reading. Raises NotAFile."""
        with storage_errors_named(self._uri_of(name)):
            if self.is_local:
                self._require_readable(name, whole=False)
            opened: IO[bytes] = self._filesystem.open(self._below(name), "rb")
        with storage_errors_named(self._uri_of(name), misuse=False), opened:
            yield opened

    def write(self, name: str, content: bytes) -> None:
        """The file `name` with this content, whole or not at all; its directories are created. An existing file is
        replaced.
        """
        place = self._below(name)
        with storage_errors_named(self._uri_of(name)):
            if not self.is_local:  # object stores have no directories, and put a whole object
                self._filesystem.pipe_file(place, content)
                return
            directory, _, last = place.rpartition("/")
            self._filesystem.makedirs(directory, exist_ok=True)
            unfinished = f"{directory}/.{last}.{uuid.uuid4().hex}"
            self._filesystem.pipe_file(unfinished, content)
            os.replace(unfinished, place)

    def modified_at(self, name: str) -> datetime:
        """Modification time, UTC, in whole milliseconds as Delta sees it."""
        with storage_errors_named(self._uri_of(name)):
            return _to_millis(self._filesystem.modified(self._below(name)))

    def modified_times(self, directory: str) -> dict[str, datetime]:
        """Name → modification time, as `modified_at`, of everything directly below `directory`, in one listing."""
        with storage_errors_named(self._uri_of(directory)):
            listed = self._filesystem.ls(self._below(directory), detail=True, **self._fresh())
        times: dict[str, datetime] = {}
        for entry in listed:
            name = str(entry["name"]).rstrip("/").rsplit("/", 1)[-1]
            time = listed_time(entry)
            if time is not None:
                times[name] = time
            elif entry.get("type") != "directory":
                times[name] = self.modified_at(f"{directory}/{name}")
        return times

    def files_below(self) -> Iterator[StoredFile]:
        """All files below this directory, in one listing. Raises FileNotFoundError if it does not exist."""
        with storage_errors_named(self.uri):
            root = self._filesystem._strip_protocol(self._root).rstrip("/")
            listed = self._filesystem.find(root, detail=True, **self._fresh())
            if not listed:
                self._filesystem.info(root)  # an empty directory is fine, a missing one is not
        for place, entry in sorted(listed.items()):
            yield self._stored(place.removeprefix(root).lstrip("/"), entry)

    def stored_file(self, name: str) -> StoredFile | None:
        """One file as `files_below` has it; None if it does not exist, as for the name of a directory."""
        found = self._info(name)
        return None if found is None or found.get("type") == "directory" else self._stored(name, found)

    def _require_readable(self, name: str, *, whole: bool) -> None:
        found = self._filesystem.info(self._below(name))
        problem = _no_file(found)
        if problem is not None:
            raise NotAFile(path=self._uri_of(name), problem=problem)
        if whole and (size := int(found.get("size") or 0)) > MOST_BYTES:
            problem = f"it has {size:,} bytes, and no more than {MOST_BYTES:,} are read at once"
            raise NotAFile(path=self._uri_of(name), problem=problem)

    def _at_most(self, name: str, start: int) -> bytes:
        """The bytes from `start` on, by one request for a range. A storage refuses the range of an empty object."""
        try:
            found = bytes(self._filesystem.cat_file(self._below(name), start=start, end=start + MOST_BYTES + 1))
        except FileNotFoundError:
            raise
        except OSError:
            if self.size(name) == start:
                return b""
            raise
        if len(found) > MOST_BYTES:
            problem = f"it has more than {MOST_BYTES:,} bytes, and no more are read at once"
            raise NotAFile(path=self._uri_of(name), problem=problem)
        return found

    def _stored(self, name: str, entry: Mapping[str, Any]) -> StoredFile:
        modified_at = listed_time(entry) or self.modified_at(name)
        target = self._info(name) if entry.get("islink") else entry  # a listing does not follow links
        problem = None if target is None else _no_file(target)
        return described(name, entry, modified_at, problem)

    def _info(self, name: str) -> dict[str, Any] | None:
        with storage_errors_named(self._uri_of(name)):
            try:
                return dict(self._filesystem.info(self._below(name)))
            except (FileNotFoundError, NotADirectoryError):
                return None
            except OSError as error:
                if error.errno in _NO_NAMES:
                    return None
                raise

    def _below(self, name: str) -> str:
        if is_uri(name):
            uri = canonical_uri(unquote(name))
            return uri.removeprefix("file://") if uri.startswith("file://") else uri
        return f"{self._root}/{name}" if name else self._root

    def _uri_of(self, name: str) -> str:
        return name if is_uri(name) else f"{self.uri}/{name}".rstrip("/")

    def _fresh(self) -> dict[str, bool]:
        return {} if self.is_local else {"refresh": True}
