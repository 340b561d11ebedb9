"""The files below a directory of a disk or an object store, page by page."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from tidemark.errors import InvalidArgument, StorageUnreachable
from tidemark.lake.failures import storage_errors_named
from tidemark.lake.file_names import FileFilter, is_hidden
from tidemark.lake.storage import Storage, StoredFile, described, listed_time, problem_of

__all__ = ["MOST_IN_PAGE", "FileListing"]

MOST_IN_PAGE = 1000  # files; no store of objects lists more at once
_GONE = (FileNotFoundError, NotADirectoryError)
_LEADS_NOWHERE = "it is a link that leads nowhere"


class FileListing:
    """The files below the directory `root` that `only` accepts, with exact names, in bounded memory.

    A store of objects with S3's interface lists names in the order of their UTF-8 bytes, from behind `start_after` on.
    Other storages are listed whole, in any order, and files up to `start_after` are left out. `requests` counts the
    requests that were made: pages of S3, and directories elsewhere. A request that the storage's client repeats counts
    once.

    A hidden directory is not entered. A link to a directory is not followed. A pipe, a device and a link that leads
    nowhere have a `problem`, and nothing opens them. Files and directories that come or go during the listing may be
    listed or not; all others are listed once.
    """

    def __init__(
        self,
        root: str,
        options: Mapping[str, Any] | None = None,
        *,
        only: FileFilter | None = None,
        start_after: str = "",
        page_size: int = MOST_IN_PAGE,
    ) -> None:
        if not 0 < page_size <= MOST_IN_PAGE:
            problem = f"a page has 1 to {MOST_IN_PAGE} files"
            raise InvalidArgument(argument="page_size", value=page_size, problem=problem)
        self.requests = 0
        self._storage = Storage(root, options)
        self._only = only or FileFilter()
        self._start_after = start_after
        self._page_size = page_size

    @property
    def uri(self) -> str:
        """The canonical URI of the directory."""
        return self._storage.uri

    @property
    def sorted_by_name(self) -> bool:
        """Whether files come in the order of their names, and `start_after` saves requests."""
        return self._storage.uri.startswith("s3://")

    def __iter__(self) -> Iterator[StoredFile]:
        for page in self.pages():
            yield from page

    def pages(self) -> Iterator[list[StoredFile]]:
        """Lists of files, none of them empty; each call lists again.

        Raises FileNotFoundError if the directory does not exist, NotADirectoryError if it is a file. A store of objects
        has no directories: there the list is empty, and only a missing bucket is an error. Raises StorageRefused, also
        for a directory below that may not be read. Raises StorageUnreachable after the time-outs and retries of the
        storage's own client.
        """
        if self.sorted_by_name:
            yield from self._pages_of_objects()
            return
        found = self._walk()
        while page := list(islice(found, self._page_size)):
            yield page

    def _pages_of_objects(self) -> Iterator[list[StoredFile]]:
        filesystem, place = self._storage.file_system()
        bucket, key, _ = filesystem.split_path(place)
        root = f"{key.rstrip('/')}/" if key else ""
        asked: dict[str, Any] = {"Bucket": bucket, "Prefix": root + self._only.beginning, "MaxKeys": self._page_size}
        place_in_order = {"StartAfter": root + self._start_after} if self._start_after else {}
        skipped = ""
        while True:
            self.requests += 1
            with storage_errors_named(self.uri):
                answer = filesystem.call_s3("list_objects_v2", **asked, **place_in_order, **filesystem.req_kw)
                listed = [(str(entry["Key"]).removeprefix(root), entry) for entry in answer.get("Contents", ())]
            if skipped and listed and _order(listed[-1][0]) < _order(skipped):
                raise StorageUnreachable(place=self.uri, problem="it does not list names in order, after StartAfter")
            if page := [_object(name, entry) for name, entry in listed if self._is_meant(name)]:
                yield page
            if not answer.get("IsTruncated"):
                return
            place_in_order = {"ContinuationToken": answer["NextContinuationToken"]}
            if listed and (hidden := _hidden_directory(listed[-1][0])) is not None:
                skipped = f"{hidden}0"  # the character behind the slash
                place_in_order = {"StartAfter": root + skipped}

    def _walk(self) -> Iterator[StoredFile]:
        """All files that are meant; keeps the directories that it has still to look into."""
        waiting = [""]
        while waiting:
            directory = waiting.pop()
            self.requests += 1
            try:
                with storage_errors_named(f"{self.uri}/{directory}".rstrip("/")):
                    for name, file in self._directory(directory):
                        if file is not None and self._is_meant(name):
                            yield file
                        elif file is None and self._only.may_hold(f"{name}/"):
                            waiting.append(f"{name}/")
            except _GONE:
                if not directory:
                    raise  # the root

    def _directory(self, directory: str) -> Iterator[tuple[str, StoredFile | None]]:
        """The names directly below a directory; None for a directory."""
        return self._local_directory(directory) if self._storage.is_local else self._remote_directory(directory)

    def _local_directory(self, directory: str) -> Iterator[tuple[str, StoredFile | None]]:
        _, root = self._storage.file_system()
        with os.scandir(f"{root}/{directory}") as entries:
            for entry in entries:
                name = directory + entry.name
                if entry.is_dir(follow_symlinks=False):
                    yield name, None
                elif (file := _local_file(name, entry)) is not None:
                    yield name, file

    def _remote_directory(self, directory: str) -> Iterator[tuple[str, StoredFile | None]]:
        filesystem, root = self._storage.file_system()
        place = str(filesystem._strip_protocol(f"{root}/{directory}")).rstrip("/")
        for entry in filesystem.ls(place, detail=True, refresh=True):
            found = str(entry["name"]).rstrip("/")
            name = directory + found.rsplit("/", 1)[-1]
            if found == place:  # an object that stands for the directory
                continue
            if entry.get("type") == "directory":
                yield name, None
                continue
            with suppress(FileNotFoundError):
                yield name, described(name, entry, listed_time(entry) or self._storage.modified_at(name))

    def _is_meant(self, name: str) -> bool:
        if not name or name.endswith("/"):  # an object that stands for a directory
            return False
        return self._only.accepts(name) and (not self._start_after or _order(name) > _order(self._start_after))


def _object(name: str, entry: Mapping[str, Any]) -> StoredFile:
    return described(name, entry, listed_time(entry) or datetime.fromtimestamp(0, UTC))


def _local_file(name: str, entry: os.DirEntry[str]) -> StoredFile | None:
    """An entry that is no directory, as it is when it is read. None for a link to a directory, and for an entry that is
    gone.
    """
    try:
        found = entry.stat()
    except OSError as error:
        if not entry.is_symlink():
            if isinstance(error, FileNotFoundError):
                return None
            raise
        return _dangling(name, entry)
    if stat.S_ISDIR(found.st_mode):
        return None
    facts = {"size": found.st_size, "mtime": found.st_mtime}
    return described(name, facts, _time(facts), problem_of(found.st_mode))


def _dangling(name: str, entry: os.DirEntry[str]) -> StoredFile | None:
    try:
        facts = {"size": 0, "mtime": entry.stat(follow_symlinks=False).st_mtime}
    except FileNotFoundError:
        return None
    return described(name, facts, _time(facts), _LEADS_NOWHERE)


def _time(facts: Mapping[str, Any]) -> datetime:
    time = listed_time(facts)
    assert time is not None
    return time


def _hidden_directory(name: str) -> str | None:
    """The outermost hidden directory that a file is in; None if there is none."""
    above = name.split("/")[:-1]
    depth = next((depth for depth, part in enumerate(above, 1) if is_hidden(part)), None)
    return None if depth is None else "/".join(above[:depth])


def _order(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")
