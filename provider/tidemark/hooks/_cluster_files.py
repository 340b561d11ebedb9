"""The files of jobs whose drivers run in a cluster: in the lake, which both sides see."""

from __future__ import annotations

import hashlib
import logging
import re
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.errors import StorageRefused, StorageUnreachable
from tidemark.hooks._archive import spark_side_archive
from tidemark.lake.failures import storage_errors_named
from tidemark.lake.orphans import sweep_directories
from tidemark.lake.storage import Storage
from tidemark.model.codec import from_plain, to_json
from tidemark.model.foreign_json import parsed
from tidemark.model.jobs import JobResult, JobSpec

if TYPE_CHECKING:
    from tidemark.hooks.settings import TidemarkSettings

__all__ = ["ClusterFiles", "Placed", "places_of"]

_FOLDER, _TASKS = "cluster_jobs", "cluster_tasks"
_ARCHIVE, _SPEC, _RESULT, _CANCEL = "tidemark.zip", "spec.json", "result.json", "cancel"
_KEPT_FOR = timedelta(days=7)
_LOOKED_AT = 200
_JOB = re.compile(r"[A-Za-z0-9-]{1,64}")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Placed:
    """The arguments of a driver: the places of archive and spec, and the hashes of what was written there."""

    archive: str
    archive_sha256: str
    spec: str
    spec_sha256: str

    @property
    def arguments(self) -> tuple[str, ...]:
        """As `jobs/in_cluster.py` takes them."""
        return (self.archive, self.archive_sha256, self.spec, self.spec_sha256)


def places_of(settings: TidemarkSettings) -> tuple[str, str]:
    """The directories in the lake of jobs, and of notes about them."""
    return f"{settings.workspace}/{_FOLDER}", f"{settings.workspace}/{_TASKS}"


class ClusterFiles:
    """The directories of jobs in the lake, `<lake root>/_tidemark/cluster_jobs/<job id>`. They have no secrets. Beside
    them `cluster_tasks/<owner>/<job id>` notes the jobs of a task.
    """

    def __init__(self, settings: TidemarkSettings) -> None:
        self._root, tasks = places_of(settings)
        self._options = settings.storage_options
        self._storage = Storage(self._root, settings.storage_options)
        self._tasks = Storage(tasks, settings.storage_options)

    def spec(self, spec: JobSpec, job_id: str) -> JobSpec:
        """The spec with result and cancel marker in the lake."""
        return replace(spec, result_uri=self._place(job_id, _RESULT), cancel_uri=self._place(job_id, _CANCEL))

    def put(self, spec: JobSpec, job_id: str) -> Placed:
        """Writes archive and spec. A second call writes the same."""
        with tempfile.TemporaryDirectory(prefix="tidemark-archive-") as directory:
            archive = spark_side_archive(Path(directory)).read_bytes()
        told = to_json(spec).encode()
        self._storage.write(f"{job_id}/{_ARCHIVE}", archive)
        self._storage.write(f"{job_id}/{_SPEC}", told)
        places = self._place(job_id, _ARCHIVE), self._place(job_id, _SPEC)
        return Placed(places[0], hashlib.sha256(archive).hexdigest(), places[1], hashlib.sha256(told).hexdigest())

    def result(self, job_id: str) -> JobResult | None:
        """The driver's last word; None if it has said none. A word that cannot be read, such as one of another release,
        is logged and counts as none.
        """
        try:
            found: JobResult = from_plain(JobResult, parsed(self._storage.read_bytes(f"{job_id}/{_RESULT}")))
            return found
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, AttributeError) as error:
            log.warning("The result in %s cannot be read, and counts as none: %s", self.result_place(job_id), error)
            return None

    def result_place(self, job_id: str) -> str:
        """The place of the result, for messages."""
        return self._place(job_id, _RESULT)

    def handed_over_at(self, job_id: str) -> datetime | None:
        """The time of the spec, which is written before spark-submit starts; None without one."""
        try:
            return self._storage.modified_at(f"{job_id}/{_SPEC}")
        except FileNotFoundError:
            return None

    def cancel(self, job_id: str) -> None:
        """Sets the marker, which stays. A driver that runs stops within seconds, and one that begins stops at once."""
        self._storage.write(f"{job_id}/{_CANCEL}", b"")

    def remove(self, job_id: str) -> None:
        """Removes the files of a job that has surely ended, and of those that nobody wrote for seven days. Files that
        cannot be removed are logged.
        """
        self._remove(self._storage, job_id, recursive=True)
        try:
            before = datetime.now(UTC) - _KEPT_FOR
            for root_uri in (self._root, self._tasks.uri):
                sweep_directories(root_uri, self._options, older_than=before, at_most=_LOOKED_AT)
        except (StorageRefused, StorageUnreachable) as error:
            log.warning("Files of dead jobs in %s could not be removed: %s", self._root, error)

    def register(self, owner: str, job_id: str, asked: str) -> None:
        """Notes a job of the owner before it is handed over. `asked`: the same for jobs that are asked for the same."""
        self._tasks.write(f"{owner}/{job_id}", asked.encode("ascii"))

    def registered(self, owner: str) -> dict[str, str]:
        """The jobs of the owner that nobody saw end, with that for which each was asked."""
        try:
            names = [name for name in self._tasks.names(owner) if _JOB.fullmatch(name)]
        except FileNotFoundError:
            return {}
        found = {}
        for name in names:
            with suppress(FileNotFoundError):  # another attempt has seen its end
                found[name] = self._tasks.read_bytes(f"{owner}/{name}").decode("ascii", "replace")
        return found

    def forget(self, owner: str, job_id: str) -> None:
        """Takes the note of a job away that has surely ended; the next attempt would look for it in vain."""
        self._remove(self._tasks, f"{owner}/{job_id}", recursive=False)

    def _remove(self, storage: Storage, name: str, *, recursive: bool) -> None:
        """Files that are gone are no error, and others that stay are logged: the job's own end counts."""
        file_system, root = storage.file_system()
        place = f"{root}/{name}"
        try:
            with storage_errors_named(place):
                file_system.rm(place, recursive=recursive)
        except FileNotFoundError:
            pass
        except (OSError, StorageRefused, StorageUnreachable) as error:
            log.warning("%s could not be removed: %s", place, error)

    def _place(self, job_id: str, name: str) -> str:
        """A local path, or a URI."""
        return f"{self._root.removeprefix('file://')}/{job_id}/{name}"
