"""The mark of a write to an object's target: what an earlier release has left in a log is read as what it is."""

from __future__ import annotations

from tidemark.replication.model.marks import ObjectMark, ObjectWrite, parse_object_mark
from tidemark.replication.model.replication import LogPosition

MARK = ObjectMark("o", 3, 1, LogPosition("A"), LogPosition("B", 2), ObjectWrite.APPLY, widest=9)
OF_AN_EARLIER_RELEASE = (
    '{"tidemark_object":{"end":{"commit":"B","sequence":2},"kind":"write_down","number":3,"object_uid":"o",'
    '"schema":null,"segment":1,"start":{"commit":"A","sequence":0},"widest":9}}'
)


def test_a_mark_is_read_back_as_it_was_written() -> None:
    assert '"kind":"apply"' in MARK.to_text()
    assert parse_object_mark(MARK.to_text()) == MARK


def test_the_mark_of_a_write_down_is_one_of_an_apply() -> None:
    assert parse_object_mark(OF_AN_EARLIER_RELEASE) == MARK


def test_a_kind_that_no_release_has_written_is_none_of_ours() -> None:
    assert parse_object_mark(MARK.to_text().replace('"apply"', '"applied"')) is None
