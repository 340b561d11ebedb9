"""The events of a replication as files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from tidemark.errors import InvalidArgument
from tidemark.hooks.replication import event_log_of
from tidemark.operators._base import flag_of, key_of, one_of, seconds_of
from tidemark.operators._constants import check_constants
from tidemark.operators._pipes import tell_outlets
from tidemark.operators._replication import ReplicationOperator, Transfer, lineage_of
from tidemark.operators._spark import SparkOperator

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk import Context

    Lineage = OperatorLineage[Any, Any]

__all__ = ["EventFilesOperator"]

_FORMATS = ("json", "avro")
_MEGABYTE = 1_000_000
_MOST_MEGABYTES = 1000  # a file is built in the driver's memory
_LONGEST = timedelta(days=1)


class EventFilesOperator(SparkOperator, ReplicationOperator):
    """Writes the captured events of a replication as files in the folders of Datastream: Avro, or JSON lines packed
    with gzip.

    A file is in `<target>/<object>/yyyy/mm/dd/hh/mm`, by the source time of its first event, and has events of one
    object and one schema. Each event is in one file, also after a kill: the next attempt writes the same files. A file
    does not change after it was written. Events that change no row are in `<target>/_control`. If all captured events
    are in files, no JVM starts. The event of an asset among the outlets has what is returned. Returns
    {replication, target, files, events, continued}: `events` of each folder. Raises ReplicationNotFound,
    ReplicationRefused, EventLogChanged, EventFilesIncomplete, InvalidArgument.

    :param replication: its name. (templated)
    :param target: an absolute path or a URI, without a password; the connection's storage options hold for it.
        (templated)
    :param format: `json` or `avro`. (templated)
    :param file_mb: the most megabytes of a file, before packing; at most 1000. (templated)
    :param file_interval: seconds of source time after which a file ends, or a timedelta; at most a day. (templated)
    :param skip_when_empty: end as skipped when nothing is new. (templated)
    """

    template_fields: Sequence[str] = (
        "replication", "target", "format", "file_mb", "file_interval", "skip_when_empty", "conn_id",
    )  # fmt: skip

    def __init__(
        self,
        *,
        replication: str,
        target: str,
        format: str = "avro",
        file_mb: float | str = 50,
        file_interval: float | str | timedelta = 60,
        skip_when_empty: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.replication = replication
        self.target = target
        self.format = format
        self.file_mb = file_mb
        self.file_interval = file_interval
        self.skip_when_empty = skip_when_empty
        check_constants(
            self,
            target=_place_of,
            format=_format_of,
            file_mb=_bytes_of,
            file_interval=_interval_of,
            skip_when_empty=flag_of,
        )
        self._transfers: list[Transfer] = []

    def get_openlineage_facets_on_complete(self, task_instance: Any) -> Lineage | None:
        """The event log, and the directory of the files; None if no file was written."""
        return lineage_of(self._transfers)

    def execute(self, context: Context) -> dict[str, Any]:
        """How far the files are, and what was written now."""
        from tidemark.replication.model.jobs import FileFormat
        from tidemark.replication.worker.definitions import get_replication
        from tidemark.replication.worker.event_files import write_event_files

        target, skip = _place_of("target", self.target), flag_of("skip_when_empty", self.skip_when_empty)
        report = write_event_files(
            self.runtime(),
            self.replication,
            target=target,
            kind=FileFormat(_format_of("format", self.format)),
            file_bytes=_bytes_of("file_mb", self.file_mb),
            interval_seconds=_interval_of("file_interval", self.file_interval).total_seconds(),
            open_log=event_log_of(self.hook),
            key=key_of(context),
        )
        done: dict[str, Any] = {"replication": self.replication, "target": target}
        if report is None or not report.files:
            if skip:
                raise AirflowSkipException(f"All captured events of {self.replication} are in files at {target}.")
            return {**done, "files": 0, "events": {}, "continued": False}
        if report.continued:
            self.log.info("An earlier attempt had begun some of these files; they have the same names and events.")
        events = sum(report.events.values())
        self.log.info("%s files with %s events: %s", report.files, events, dict(report.events))
        event_log = get_replication(self.hook.open_store(), self.replication).event_log
        self._transfers = [Transfer.from_log(event_log, target, events)]
        done |= {"files": report.files, "events": dict(report.events), "continued": report.continued}
        tell_outlets(context, self, done)
        return done


def _place_of(argument: str, value: object) -> str:
    """The canonical URI. Raises InvalidArgument."""
    from tidemark.hooks._secrets import require_no_password
    from tidemark.lake.storage import canonical_uri

    text = value.strip() if isinstance(value, str) else ""
    if not text.startswith("/") and "://" not in text:
        raise InvalidArgument(argument=argument, value=value, problem="give an absolute path, or a URI")
    require_no_password(argument, text)
    return canonical_uri(text)


def _format_of(argument: str, value: object) -> str:
    return one_of(_FORMATS, argument, value)


def _bytes_of(argument: str, value: object) -> int:
    try:
        found = int(float(str(value)) * _MEGABYTE)
    except (ValueError, OverflowError):
        found = 0
    if not 0 < found <= _MOST_MEGABYTES * _MEGABYTE:
        problem = f"it must be a number of megabytes, more than 0 and {_MOST_MEGABYTES} at most"
        raise InvalidArgument(argument=argument, value=value, problem=problem)
    return found


def _interval_of(argument: str, value: Any) -> timedelta:
    found = value if isinstance(value, timedelta) else seconds_of(argument, value)
    if not timedelta(0) < found <= _LONGEST:
        problem = "it must be more than 0 seconds, and a day at most"
        raise InvalidArgument(argument=argument, value=value, problem=problem)
    return found
