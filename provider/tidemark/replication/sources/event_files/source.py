"""A folder of event files as the source of a replication."""

from __future__ import annotations

from tidemark.lake.storage import canonical_uri
from tidemark.model.source_address import SourceAddress
from tidemark.replication.model.replication import FoundObject, Selection
from tidemark.replication.planning.debezium_marks import Lanes
from tidemark.replication.planning.event_file_records import KEY_UNKNOWN
from tidemark.replication.sources.event_files.inputs import EventFolder
from tidemark.replication.sources.event_files.opening import open_folder
from tidemark.replication.sources.event_files.seen import tables_in
from tidemark.replication.sources.event_files.settings import settings_of
from tidemark.replication.sources.landed import LandedSource

__all__ = ["EventFileSource"]


class EventFileSource(LandedSource):
    """The `Source` of event files."""

    what = "event files"
    key_unknown = KEY_UNKNOWN
    unsupported = f"{KEY_UNKNOWN}."

    def __init__(self, address: SourceAddress) -> None:
        self._settings = settings_of(address)
        location = self._settings.location
        super().__init__(location, self._settings.begin, canonical_uri(location))

    def system_id(self) -> str:
        """The canonical URI of the folder."""
        return self._place

    def _landed(self) -> EventFolder:
        return open_folder(self._settings)

    def _tables(
        self, start: Lanes, numeric_as: str | None, selection: Selection | None = None
    ) -> tuple[FoundObject, ...]:
        folder = open_folder(self._settings, numeric_as)
        return tables_in(folder, start, folder.ends(), self._settings.key_of)
