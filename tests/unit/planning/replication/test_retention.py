"""From where on the events of each object are needed."""

from __future__ import annotations

from tests.control.replication_model import at, columns
from tidemark.model.streams import TableRef
from tidemark.replication.model.replication import (
    START,
    LogPosition,
    ObjectName,
    ObjectState,
    ReplicatedObject,
    WriteMode,
)
from tidemark.replication.planning.retention import needed_from


def one(state: ObjectState, applied: LogPosition | None) -> ReplicatedObject:
    name, target = ObjectName("s", "a"), TableRef("t", "/t", "")
    return ReplicatedObject("uid", "r", name, "7", columns("id"), WriteMode.MERGE, target, state, applied=applied)


def test_events_are_needed_from_where_the_target_is() -> None:
    assert needed_from([(one(ObjectState.COMPLETED, at(9)), False)]) == {"7": at(9)}
    assert needed_from([(one(ObjectState.FAILED, at(9)), False)]) == {"7": at(9)}


def test_all_are_needed_while_a_copy_is_under_way() -> None:
    assert needed_from([(one(ObjectState.ACTIVE, at(9)), False)]) == {"7": START}
    assert needed_from([(one(ObjectState.FAILED, at(9)), True)]) == {"7": START}


def test_none_that_was_captured_is_needed_for_a_first_copy_that_begins_later() -> None:
    assert needed_from([(one(ObjectState.NOT_STARTED, None), False)]) == {}
