"""One partition of a Kafka topic, as committed, without a consumer group. A token is `offset@topic id`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from tidemark.channels.driver.json_rows import JsonLines
from tidemark.errors import InvalidArgument, TopicPartitionsChanged
from tidemark.kafka.address import KafkaAddress
from tidemark.kafka.ranges import End, Start, TopicRange
from tidemark.kafka.reader import ReadLimits, open_reader
from tidemark.kafka.records import Record
from tidemark.model.foreign_json import whole_number
from tidemark.model.source_connection import SourceConnection

__all__ = ["kafka_partition"]

_JSON, _RECORD = "json", "record"
_BROKERS = "bootstrap.servers"


def kafka_partition(
    after_token: str | None,
    *,
    connection: SourceConnection,
    topic: str,
    partition: int = 0,
    start: str = "earliest",
    form: str = _JSON,
    rows_per_batch: int = 10_000,
) -> Iterator[tuple[Any, str]]:
    """(rows, token) of the records behind a token, up to the end of the partition at the call.

    `start`: earliest, latest, or a time in ISO 8601 with its zone; counts without a token. `form`: json for a JSON
    object in each value, or record. Rows of records have the columns topic, partition, offset, timestamp, key, value
    and headers; key and value are texts. A value of None is passed over in
    form json. Offsets without a record, such as those of transactions, are passed over too.

    Raises InvalidArgument, and errors of brokers: TopicRecreated if the token is of another topic of that name.
    Raises OffsetOutOfRange if the records behind it are gone.
    """
    if form not in (_JSON, _RECORD):
        raise InvalidArgument(argument="form", value=form, problem=f"it must be {_JSON} or {_RECORD}")
    offset, topic_id = _place(after_token)
    settings = {name: str(value) for name, value in connection.extra.items() if name != _BROKERS}
    address = KafkaAddress(str(connection.extra[_BROKERS]), settings, connection.conn_id)
    begin = Start(others=_start(start)) if offset is None else Start({int(partition): offset + 1}, End.LATEST)
    with open_reader(address, ReadLimits(batch_records=int(rows_per_batch))) as reader:
        wanted = _of_partition(reader.range_from(topic, begin, topic_id=topic_id), int(partition))
        for batch in reader.read(wanted):
            yield _rows(batch.records, topic, form), f"{batch.positions[int(partition)] - 1}@{wanted.topic_id}"
        if offset is None and not wanted.length:  # the next call begins here, not at the end of that time
            yield [], f"{wanted.partitions[0].start - 1}@{wanted.topic_id}"


def _start(text: str) -> End | datetime:
    try:
        return End(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        problem = "it must be earliest, latest, or a time as 2026-01-01T00:00:00Z"
        raise InvalidArgument(argument="start", value=text, problem=problem) from None


def _place(token: str | None) -> tuple[int | None, str | None]:
    """The offset of the last record, and the id of its topic. A token that was set by hand may lack the id."""
    if token is None:
        return None, None
    offset, _, topic_id = token.partition("@")
    if whole_number(offset.removeprefix("-")) is None:
        problem = "it must be the offset of the last record, as 42 or 42@topic id"
        raise InvalidArgument(argument="offset_token", value=token, problem=problem)
    return int(offset), topic_id or None


def _of_partition(wanted: TopicRange, partition: int) -> TopicRange:
    own = tuple(one for one in wanted.partitions if one.partition == partition)
    if not own:
        known = ", ".join(str(one.partition) for one in wanted.partitions)
        raise TopicPartitionsChanged(topic=wanted.topic, expected=str(partition), found=known)
    return replace(wanted, partitions=own)


def _rows(records: Sequence[Record], topic: str, form: str) -> Any:
    if form == _JSON:  # a line break in JSON is white space
        filled = [(record.offset, record.value) for record in records if record.value is not None]
        lines = [value.replace(b"\n", b" ").replace(b"\r", b" ") + b"\n" for _, value in filled]
        return JsonLines(lines, lambda index: f"offset {filled[index][0]} of {topic}")
    return [_row(record, topic) for record in records]


def _row(record: Record, topic: str) -> dict[str, Any]:
    return {
        "topic": topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [{"name": name, "value": _text(value)} for name, value in record.headers],
    }


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")
