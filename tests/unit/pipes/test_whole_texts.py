"""Facts of texts that Spark's readers of records do not tell: their bytes, the lines of a header, the last quote."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from tidemark.errors import JobCancelled
from tidemark.pipes.driver.probe import broken_texts
from tidemark.pipes.driver.whole_texts import (
    ends_in_quotes,
    files_in_utf8,
    header_records,
    records_in,
    unclosed_files,
)
from tidemark.pipes.planning.formats import file_format
from tidemark.pipes.planning.readers import CsvRead, text_reader


def quoted(**options: Any) -> CsvRead:
    found = text_reader(file_format("CSV", {"FIELD_OPTIONALLY_ENCLOSED_BY": '"', **options}))
    assert isinstance(found, CsvRead)
    return found


@pytest.mark.parametrize(
    ("closed", "open_"),
    [
        ('1,"a\nb"\n', '1,"a\nb\n2,c\n'),
        ('1,"a\n""b"""', '1,"a\nb""\n'),
        ('1,"a\nb",,\r\n', '1,"a\nb,\n'),
        ('1,"a\nb",5\n', '1,"a\nb,5\n'),
        ('1,"a\nb",""\n', '1,"a\nb,""\n'),
        ('"a\nb",""', '"a\nb","'),
        ('1,5" pipe\n2,6"\n', '1,5" pipe\n"2\n'),
        ('1,"a"b,"c\nd"\r\n', '1,"a"b,"c\nd\r\n'),
        ("", '"'),
    ],
)
def test_a_text_ends_within_quotes_if_the_last_quote_that_opens_a_field_is_not_closed(closed: str, open_: str) -> None:
    for parts in (lambda text: [text], iter):  # whole, and each character alone
        assert (ends_in_quotes(parts(closed), quoted()), ends_in_quotes(parts(open_), quoted())) == (False, True)


def test_blanks_before_a_quote_are_passed_over_however_many_there_are() -> None:
    read = quoted(TRIM_SPACE=True)
    for parts in (lambda text: [text], iter):
        assert ends_in_quotes(parts('1, \t "a\n'), read)
        assert not ends_in_quotes(parts('1, \t "a\n"'), read)
    assert ends_in_quotes(["1" + "\n" * (1 << 20) + '"a'], read)  # in linear time


def test_a_quote_behind_an_escape_closes_nothing() -> None:
    read = quoted(ESCAPE="\\")
    for parts in (lambda text: [text], iter):
        assert ends_in_quotes(parts('1,"a\nb\\"\n'), read)
        assert not ends_in_quotes(parts('1,"a\nb\\\\"\n'), read)
        assert not ends_in_quotes(parts('1,"a\nb"'), read)


def test_a_quote_opens_a_field_behind_each_separator_and_end_of_a_record_of_the_format() -> None:
    wide = quoted(FIELD_DELIMITER="||", RECORD_DELIMITER=";")
    for parts in (lambda text: [text], iter):
        assert ends_in_quotes(parts('1||"a;2'), wide)
        assert ends_in_quotes(parts('1;"a'), wide)
        assert not ends_in_quotes(parts('1,"a\n"b'), wide)
        assert not ends_in_quotes(parts('1, "a\n'), quoted())
        assert ends_in_quotes(parts('1, "a\n'), quoted(TRIM_SPACE=True))


@pytest.mark.parametrize(
    ("text", "records"),
    [
        ("Report\n\nid,name\n1,a\n", 2),
        ("\n\n\n1,a\n", 0),
        ('"a\nb\nc",x\n1,2\n', 1),
        ("a\nb\nc\n1", 3),
        ("", 0),
        ('a\n"b\n\n\nc"\n1\n', 2),
    ],
)
def test_the_lines_of_a_header_have_as_many_records_as_begin_in_them(text: str, records: int) -> None:
    assert records_in(text, quoted(SKIP_HEADER=3)) == records


def never_due() -> None:
    """The job need not stop."""


def cancelled() -> None:
    raise JobCancelled(key="a/load")


def test_files_are_read_whole_also_packed_ones(tmp_path: Path) -> None:
    long = b"1,a\n" * 50_000
    for name, content in {
        "good.csv": long + '2,"\ufffd\nb"\n'.encode(),
        "latin.csv": long + b'2,"\xe9"\n',
        "open.csv": long + b'2,"b\n3,c\n',
        "blank.csv": b"\nid,name\n1,a\n",
    }.items():
        (tmp_path / name).write_bytes(content)
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(content))
    both = ["good.csv", "good.csv.gz", "latin.csv", "latin.csv.gz"]
    assert files_in_utf8(str(tmp_path), None, both, never_due) == both[:2]
    ends = ["good.csv", "good.csv.gz", "open.csv", "open.csv.gz"]
    assert unclosed_files(str(tmp_path), None, ends, quoted(), never_due) == ends[2:]
    unknown = ["of Spark alone.csv.snappy"]
    assert files_in_utf8(str(tmp_path), None, unknown, never_due) == unknown
    assert unclosed_files(str(tmp_path), None, unknown, quoted(), never_due) == []
    heads = ["blank.csv", "blank.csv.gz", "good.csv"]
    assert header_records(str(tmp_path), None, heads, quoted(SKIP_HEADER=2)) == dict.fromkeys(heads[:2], 1)


def test_the_headers_of_many_files_are_counted_without_their_texts_in_memory(tmp_path: Path) -> None:
    first, *others = [f"{number}.csv" for number in range(400)]
    (tmp_path / first).write_bytes(b"id,name\n" * 10_000)
    for name in others:
        (tmp_path / name).hardlink_to(tmp_path / first)
    tracemalloc.start()
    try:
        assert header_records(str(tmp_path), None, [first, *others], quoted(SKIP_HEADER=1)) == {}
        assert tracemalloc.get_traced_memory()[1] < 12 << 20
    finally:
        tracemalloc.stop()


def test_reads_of_large_files_stop_if_the_job_must_and_those_of_small_ones_do_not_ask(tmp_path: Path) -> None:
    location, names = str(tmp_path), ["a.csv", "b.csv"]
    for large in names:
        (tmp_path / large).write_bytes(b"1,a\n" * (9 << 18))
    (tmp_path / "small.csv").write_bytes(b"1,a\n" * 100)
    for read in (
        lambda some: files_in_utf8(location, None, some, cancelled),
        lambda some: unclosed_files(location, None, some, quoted(), cancelled),
        lambda some: broken_texts(location, None, some, cancelled),
    ):
        read(["small.csv"])
        with pytest.raises(JobCancelled):
            read(names)
