"""Files that somebody names: lists of requests, names below a place, and marks of reports."""

from __future__ import annotations

import json

import pytest

from tidemark.errors import BodyUnreadable, InvalidArgument
from tidemark.pipes.planning.marks import Mark, mark_of
from tidemark.pipes.planning.named_files import files_of_body, name_below

TEXT = "text/plain; charset=utf-8"


def test_a_list_is_json_with_sizes_or_lines_of_text() -> None:
    body = json.dumps(
        {"files": [{"path": "a/b c.csv", "size": 7}, {"path": "\u00e4", "size": None}], "more": 1}
    ).encode()
    assert files_of_body(body, "Application/JSON") == files_of_body(body, None) == {"a/b c.csv": 7, "\u00e4": 0}
    assert files_of_body(b"\xef\xbb\xbfa\r\n\nb c\n", TEXT) == {"a": 0, "b c": 0}
    most = "\n".join(map(str, range(5_000))).encode()
    assert len(files_of_body(most, TEXT)) == 5_000
    assert files_of_body(b"x" * 1_024, TEXT) == {"x" * 1_024: 0}


@pytest.mark.parametrize(
    ("body", "media_type", "problem"),
    [
        (b"{", None, "not JSON"),
        (b"[" * 100_000, None, "not JSON"),
        (b"[]", None, "an object with a list"),
        (b'{"files": {}}', None, "an object with a list"),
        (b'{"files": []}', None, "1 to 5,000 files"),
        (json.dumps({"files": [{"path": str(n)} for n in range(5_001)]}).encode(), None, "5,001 files"),
        (b'{"files": ["a.csv"]}', None, r"files\[0\]='a.csv'"),
        (b'{"files": [{"path": "a"}, {"path": 7}]}', None, r"files\[1\].path"),
        (b'{"files": [{"path": ""}]}', None, r"files\[0\].path"),
        (b'{"files": [{"path": "/"}]}', None, r"files\[0\].path"),
        (b'{"files": [{"path": "a", "size": -1}]}', None, r"files\[0\].size"),
        (b'{"files": [{"path": "a", "size": true}]}', None, r"files\[0\].size"),
        (b'{"files": [{"path": "a", "size": NaN}]}', None, r"files\[0\].size"),
        (b'{"files": [{"path": "a", "size": 9223372036854775808}]}', None, r"files\[0\].size"),
        (b'{"files": [{"path": "\\ud800"}]}', None, "not Unicode"),
        (b'{"files": [{"path": "a\\u0000"}]}', None, "no NUL"),
        (b"a\n" + b"x" * 1_025, TEXT, "line 2"),
        ("\u00e4".encode() * 513, TEXT, "1,026 bytes"),
        (b"\n\n", TEXT, "1 to 5,000 files"),
        (b"\xff", TEXT, "UTF-8"),
        (b"a", "text/csv", "neither application/json nor text/plain"),
    ],
)
def test_a_bad_list_is_refused_with_its_place(body: bytes, media_type: str | None, problem: str) -> None:
    with pytest.raises((BodyUnreadable, InvalidArgument), match=problem):
        files_of_body(body, media_type)


def test_a_name_is_below_the_prefix_and_leads_nowhere_else() -> None:
    assert name_below("", "/a/b") == "a/b"
    assert name_below("in/", "/a") == "in/a"
    assert name_below("in/2024", "-01.csv") == "in/2024-01.csv"
    for name in ("../a", "a/../../b", "a//b", "./a", "a/", ".."):
        with pytest.raises(InvalidArgument, match=r"without \. and \.\."):
            name_below("in/", name)


def test_marks_are_read_as_they_were_written_and_have_an_order() -> None:
    mark = Mark(2, 3, "5f0c-1")
    assert mark_of(mark.to_text()) == mark
    assert mark_of(None) == mark_of("") is None
    assert Mark().to_text() == ""
    assert sorted([Mark(10, 1), Mark(2, 9), Mark(2, 10)]) == [Mark(2, 9), Mark(2, 10), Mark(10, 1)]
    for text in ("1_2", "x_1_t", "1_2_", "1_2_t t", "\u0661_1_t", "9" * 30 + "_1_t"):
        with pytest.raises(InvalidArgument, match="nextBeginMark"):
            mark_of(text)
