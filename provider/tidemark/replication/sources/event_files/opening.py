"""Whose event files are in the folder."""

from __future__ import annotations

from tidemark.replication.sources.event_files.inputs import EventFolder
from tidemark.replication.sources.event_files.settings import EventFileSettings

__all__ = ["open_folder"]


def open_folder(settings: EventFileSettings, numeric_as: str | None = None) -> EventFolder:
    """Tidemark's, if it has lists of ranges, else Datastream's. `numeric_as`: as in ReplicationOptions.

    Raises SourceUnreachable, SourceRefused.
    """
    from tidemark.replication.sources.event_files.own_files import OwnFolder, is_own

    if is_own(settings):
        return OwnFolder(settings)
    from tidemark.replication.sources.event_files.datastream_files import DatastreamFolder

    return DatastreamFolder(settings, numeric_as)
