"""A directory of notification documents as a channel: each file is one document."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice

from tidemark.errors import NotAFile
from tidemark.lake.failures import storage_errors_named
from tidemark.lake.file_listing import FileListing
from tidemark.lake.orphans import open_fresh
from tidemark.lake.storage import Storage, StoredFile, canonical_uri
from tidemark.pipes.model.notifications import Notification

__all__ = ["UNFINISHED_FOR", "UNREADABLE", "DirectoryChannel"]

UNREADABLE = "_unreadable"  # hidden, so that no listing enters it
UNFINISHED_FOR = timedelta(minutes=10)  # after its last change a document counts as whole
_AT_ONCE = 16  # requests to an object store
_LONGEST = 16 << 20  # bytes of a document


class DirectoryChannel:
    """The documents of a directory or of a bucket's prefix, given as a path or URI. Their names must not begin with `_`
    or `.`. An acknowledged document is removed.

    A document that is not understood is renamed to `_unreadable/…` once it has not changed for ten minutes. Two runs
    may read the same document, which is harmless.
    """

    def __init__(
        self,
        location: str,
        options: Mapping[str, str] | None = None,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.uri = canonical_uri(location)
        self._options = options
        self._clock = clock
        self._changed: dict[str, datetime] = {}

    def receive(self, most: int) -> Sequence[Notification]:
        """The documents that are listed first. A directory that does not exist has none."""
        try:
            found = [file for file in islice(FileListing(self.uri, self._options), most) if file.problem is None]
        except (FileNotFoundError, NotADirectoryError):
            return ()
        storage = Storage(self.uri, self._options)
        self._changed = {file.name: file.modified_at for file in found}
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            texts = pool.map(lambda file: _text_of(storage, file), found)
            return [Notification(text, file.name) for file, text in zip(found, texts, strict=True) if text is not None]

    def waiting(self, most: int = 1_000) -> int:
        """How many documents wait, at most `most`."""
        try:
            found = (file for file in FileListing(self.uri, self._options) if file.problem is None)
            return sum(1 for _ in islice(found, most))
        except (FileNotFoundError, NotADirectoryError):
            return 0

    @property
    def hold_seconds(self) -> float | None:
        """None: nothing is held."""
        return None

    def hold(self, handles: Sequence[str]) -> None:
        """Nothing: documents are not hidden from other readers."""

    def acknowledge(self, handles: Sequence[str]) -> None:
        """Remove the documents. Raises StorageRefused, StorageUnreachable."""
        filesystem, root = open_fresh(self.uri, self._options)

        def remove(name: str) -> None:
            with suppress(FileNotFoundError), storage_errors_named(f"{self.uri}/{name}"):
                filesystem.rm_file(f"{root}/{name}")

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(remove, handles))

    def refuse(self, handle: str) -> str | None:
        """Rename a document that is not understood. A document that changed in the last ten minutes stays."""
        if self._clock() - self._changed[handle] < UNFINISHED_FOR:
            return None
        aside = f"{UNREADABLE}/{handle}"
        filesystem, root = open_fresh(self.uri, self._options)
        with suppress(FileNotFoundError), storage_errors_named(f"{self.uri}/{aside}"):
            filesystem.makedirs(f"{root}/{aside}".rpartition("/")[0], exist_ok=True)
            filesystem.mv(f"{root}/{handle}", f"{root}/{aside}")
        return f"it was renamed to {aside}"


def _text_of(storage: Storage, file: StoredFile) -> str | None:
    """The text of a document, empty if it is too long; None if it is gone. Bytes that are no UTF-8 become lone
    surrogates, by which they are known.
    """
    if file.size > _LONGEST:
        return ""
    try:
        return storage.read_bytes(file.name).removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    except (FileNotFoundError, NotAFile):
        return None
