"""A place where envelopes are landed, as capture and the worker read it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from tidemark.errors import (
    BrokerError,
    BrokerRefused,
    BrokerUnreachable,
    KafkaClientNotInstalled,
    NotAFile,
    OffsetOutOfRange,
    SlotLost,
    SourceDriverNotInstalled,
    SourceRefused,
    SourceUnreachable,
    StorageRefused,
    StorageUnreachable,
    TopicPartitionsChanged,
    TopicRecreated,
)
from tidemark.replication.planning.debezium import Landed
from tidemark.replication.planning.debezium_marks import Lanes

__all__ = ["EnvelopeInput", "Record", "input_errors_named", "lost"]


class Record(NamedTuple):
    """A record, or the end of a file (`landed` is None). `mark`: how far its lane is read behind it. `place`: file or
    topic, and the number in it, for people. `avro`: the schema of the row, of a record that was Avro.
    """

    lane: str
    mark: tuple[Any, ...]
    place: tuple[str, int]
    landed: Landed | None
    avro: Mapping[str, Any] | None = None


class EnvelopeInput(Protocol):
    """Lanes of records. Everything raises SourceUnreachable, SourceRefused, SourceDriverNotInstalled."""

    place: str  # for people

    def identity(self) -> str:
        """Which place it is: another one has other positions."""
        ...

    def remedy(self, lane: str) -> str:
        """The next step after a record of the lane that is no envelope."""
        ...

    def ends(self) -> Lanes:
        """The current end of each lane."""
        ...

    def require_kept(self, lanes: Lanes, position: str) -> None:
        """Say nothing if all behind `lanes` can be read, and nothing came before them. Raises SlotLost,
        EnvelopesOutOfOrder.
        """
        ...

    def is_behind(self, lanes: Lanes, end: Lanes) -> bool:
        """Whether there is something between the two."""
        ...

    def records(self, lanes: Lanes, end: Lanes) -> Iterator[Record]:
        """The records between the two, lane by lane in the order of their names. Raises EnvelopeInvalid, SlotLost."""
        ...

    def has_siblings(self, lane: str, lanes: Lanes) -> bool:
        """Whether another lane may have changes of the same table."""
        ...

    def amount(self, lanes: Lanes, end: Lanes) -> int:
        """Bytes between the two, or records if bytes are not known."""
        ...


def lost(place: str, problem: str, position: str) -> SlotLost:
    """The error for records that are gone before they were read."""
    return SlotLost(slot=f"of {place}", problem=problem, position=position)


@contextmanager
def input_errors_named(place: str, what: str = "the envelopes") -> Iterator[None]:
    """Errors of storage and brokers as errors of a source."""
    try:
        yield
    except (StorageUnreachable, BrokerUnreachable) as error:
        raise SourceUnreachable(source=place, problem=str(error).rstrip(".")) from error
    except (TopicRecreated, TopicPartitionsChanged, OffsetOutOfRange) as error:
        raise lost(place, f"was lost: {str(error).rstrip('.')}", "the captured position") from error
    except KafkaClientNotInstalled as error:
        command = "pip install 'airflow-provider-tidemark[kafka]'"
        raise SourceDriverNotInstalled(kind="Kafka", package="confluent-kafka", command=command) from error
    except (StorageRefused, NotAFile, BrokerRefused, BrokerError, FileNotFoundError, NotADirectoryError) as error:
        remedy = "Correct the location of the connection, or its rights."
        raise SourceRefused(source=place, what=what, problem=str(error).rstrip("."), remedy=remedy) from error
