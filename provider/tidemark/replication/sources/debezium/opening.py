"""Which kind of place the settings name."""

from __future__ import annotations

from tidemark.replication.sources.debezium.inputs import EnvelopeInput
from tidemark.replication.sources.debezium.settings import DebeziumSettings

__all__ = ["open_input"]


def open_input(settings: DebeziumSettings) -> EnvelopeInput:
    """Nothing is connected yet. Raises InvalidArgument for topics without brokers."""
    if settings.topics:
        from tidemark.replication.sources.debezium.topics import TopicInput

        return TopicInput(settings)
    from tidemark.replication.sources.debezium.files import FileInput

    return FileInput(settings)
