"""File formats: options by the names of the source system, and the readers that they give."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.errors import InvalidArgument, NotYetSupported
from tidemark.pipes.model.formats import FileFormat, FileType
from tidemark.pipes.planning.datetime_patterns import spark_pattern
from tidemark.pipes.planning.format_options import OPTIONS
from tidemark.pipes.planning.formats import defaults_of, described, file_format, merged, option
from tidemark.pipes.planning.readers import ABSENT, CsvRead, JsonRead, XmlRead, columnar_reader, text_reader


def csv(**options: Any) -> CsvRead:
    found = text_reader(file_format("CSV", options))
    assert isinstance(found, CsvRead)
    return found


def json(**options: Any) -> JsonRead:
    found = text_reader(file_format("JSON", options))
    assert isinstance(found, JsonRead)
    return found


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"field_delimiter": "0x7c"}, {"FIELD_DELIMITER": "|"}),
        ({"FIELD_DELIMITER": "\\t"}, {"FIELD_DELIMITER": "\t"}),
        ({"FIELD_DELIMITER": "\\x01"}, {"FIELD_DELIMITER": "\x01"}),
        ({"FIELD_OPTIONALLY_ENCLOSED_BY": "\\047"}, {"FIELD_OPTIONALLY_ENCLOSED_BY": "'"}),
        ({"FIELD_OPTIONALLY_ENCLOSED_BY": "none"}, {"FIELD_OPTIONALLY_ENCLOSED_BY": "NONE"}),
        ({"ESCAPE": "\\"}, {"ESCAPE": "\\"}),
        ({"ENCODING": "utf-8"}, {"ENCODING": "UTF8"}),
        ({"SKIP_HEADER": "1", "TRIM_SPACE": "true"}, {"SKIP_HEADER": 1, "TRIM_SPACE": True}),
        ({"NULL_IF": ["a", "b"]}, {"NULL_IF": ("a", "b")}),
        ({"NULL_IF": "a"}, {"NULL_IF": ("a",)}),
    ],
)
def test_values_are_read_as_the_source_system_reads_them(given: dict[str, Any], kept: dict[str, Any]) -> None:
    assert file_format("csv", given) == FileFormat(FileType.CSV, kept)


@pytest.mark.parametrize(
    ("type", "options", "said"),
    [
        ("xlsx", {}, "there are CSV, JSON"),
        ("csv", {"FIELD_DELIMETER": ","}, "similar names: FIELD_DELIMITER"),
        ("csv", {"STRIP_OUTER_ARRAY": True}, "no such option"),
        ("csv", {"SKIP_HEADER": -1}, "at least 0"),
        ("csv", {"SKIP_HEADER": True}, "whole number"),
        ("csv", {"TRIM_SPACE": "yes"}, "TRUE or FALSE"),
        ("csv", {"COMPRESSION": "RAR"}, "there are AUTO, GZIP"),
        ("csv", {"ENCODING": "klingon"}, "there are UTF8"),
        ("csv", {"ESCAPE": "ab"}, "one character"),
        ("csv", {"FIELD_DELIMITER": ""}, "empty"),
        ("csv", {"FIELD_DELIMITER": "\n"}, "overlaps"),
        ("csv", {"PARSE_HEADER": True, "SKIP_HEADER": 1}, "PARSE_HEADER"),
        ("csv", {"DATE_FORMAT": "YYYY-QQ"}, "DATE_FORMAT.*QQ"),
        ("json", {"NULL_IF": [1]}, "list of texts"),
    ],
)
def test_a_wrong_name_or_value_is_refused_with_the_right_ones(type: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgument, match=said):
        file_format(type, options)


@pytest.mark.parametrize(
    ("type", "options"),
    [
        ("custom", {}),
        *(("csv", {"COMPRESSION": value}) for value in ("BROTLI", "ZSTD", "RAW_DEFLATE")),
        ("csv", {"RECORD_DELIMITER": "NONE"}),
        ("csv", {"ENCODING": "WINDOWS1252"}),
        ("csv", {"ENCODING": "UTF-16"}),
        ("csv", {"TIME_FORMAT": "HH24:MI"}),
        ("csv", {"ESCAPE_UNENCLOSED_FIELD": "\\"}),
        ("csv", {"SKIP_BYTE_ORDER_MARK": False}),
        ("csv", {"DATE_FORMAT": "DY, DD MON YYYY"}),
        ("json", {"ENABLE_OCTAL": True}),
        ("json", {"STRIP_NULL_VALUES": True}),
        ("json", {"ALLOW_DUPLICATE": True}),
        ("avro", {"COMPRESSION": "GZIP"}),
        ("parquet", {"USE_LOGICAL_TYPE": False}),
        ("xml", {"DISABLE_SNOWFLAKE_DATA": True}),
    ],
)
def test_a_value_that_spark_cannot_honour_is_refused_by_name(type: str, options: dict[str, Any]) -> None:
    with pytest.raises(NotYetSupported, match=next(iter(options), "CUSTOM")):
        file_format(type, options)


@pytest.mark.parametrize("type", list(FileType))
def test_each_default_may_be_given_and_every_option_is_described(type: FileType) -> None:
    given = file_format(type, defaults_of(type))
    rows = described(given)
    assert [row[0] for row in rows] == ["TYPE", *OPTIONS[type]]
    assert all(value == default for _, _, value, default in rows[1:])


def test_a_description_shows_what_is_set_and_what_would_be() -> None:
    rows = {row[0]: row[1:] for row in described(file_format("CSV", {"FIELD_DELIMITER": "\t", "SKIP_HEADER": 1}))}
    assert rows["FIELD_DELIMITER"] == ("String", "\\t", ",")
    assert rows["SKIP_HEADER"] == ("Integer", "1", "0")
    assert rows["TRIM_SPACE"] == ("Boolean", "false", "false")
    assert rows["NULL_IF"] == ("List", "[\\N]", "[\\N]")


def test_options_of_one_type_are_merged_and_another_type_replaces_them() -> None:
    base = file_format("CSV", {"SKIP_HEADER": 1, "FIELD_DELIMITER": "|"})
    assert merged(base, file_format("CSV", {"SKIP_HEADER": 0})).options == {"SKIP_HEADER": 0, "FIELD_DELIMITER": "|"}
    assert merged(base, file_format("JSON")) == FileFormat(FileType.JSON)
    assert merged(None, None) == FileFormat()
    assert merged(base, None) == base
    assert option(base, "TRIM_SPACE") is False
    with pytest.raises(InvalidArgument, match="PARSE_HEADER"):
        merged(base, file_format("CSV", {"PARSE_HEADER": True}))


def test_a_csv_format_without_quotes_reads_lines() -> None:
    plain = csv()
    assert (plain.separator, plain.quote, plain.escape, plain.multi_line) == (",", None, None, False)
    assert (plain.null_if, plain.empty_field_as_null, plain.column_count_mismatch_is_error) == (("\\N",), True, True)
    assert plain.options["nullValue"] == ABSENT
    assert plain.options["quote"] == ""
    assert plain.suffix is None


def test_fields_in_quotes_may_have_ends_of_lines_and_doubled_quotes() -> None:
    enclosed = csv(FIELD_OPTIONALLY_ENCLOSED_BY='"')
    assert (enclosed.quote, enclosed.escape, enclosed.multi_line) == ('"', '"', True)
    assert csv(FIELD_OPTIONALLY_ENCLOSED_BY='"', MULTI_LINE=False).multi_line is False
    assert csv(FIELD_OPTIONALLY_ENCLOSED_BY='"', ESCAPE="\\").escape == "\\"
    with pytest.raises(NotYetSupported, match="RECORD_DELIMITER"):
        csv(FIELD_OPTIONALLY_ENCLOSED_BY='"', RECORD_DELIMITER="||")


def test_other_options_of_csv_reach_the_reader() -> None:
    found = csv(
        RECORD_DELIMITER=";",
        FIELD_DELIMITER="NONE",
        COMPRESSION="GZIP",
        TRIM_SPACE=True,
        DATE_FORMAT="DD.MM.YYYY",
        BINARY_FORMAT="base64",
        ENCODING="ISO-8859-1",
    )
    assert (found.line_separator, found.separator, found.suffix, found.encoding) == (";", None, ".gz", "ISO-8859-1")
    assert (found.options["lineSep"], found.options["ignoreLeadingWhiteSpace"]) == (";", "true")
    assert (found.values.date, found.values.timestamp, found.values.binary) == ("dd.MM.yyyy", None, "BASE64")


def test_a_line_of_json_is_a_document_unless_the_format_says_otherwise() -> None:
    assert json().multi_line is False
    assert json(MULTI_LINE=True).multi_line is True
    stripped = json(STRIP_OUTER_ARRAY=True, IGNORE_UTF8_ERRORS=True)
    assert (stripped.multi_line, stripped.strip_outer_array) == (True, True)
    assert stripped.replace_invalid


def test_xml_needs_the_element_that_is_a_row() -> None:
    found = text_reader(file_format("XML", {"ROW_TAG": "auto", "PRESERVE_SPACE": True, "DISABLE_AUTO_CONVERT": True}))
    assert isinstance(found, XmlRead)
    assert found.options == {"rowTag": "auto", "ignoreSurroundingSpaces": "false", "inferSchema": "false"}
    with pytest.raises(NotYetSupported, match="ROW_TAG"):
        text_reader(file_format("XML"))


def test_columnar_files_have_a_reader_of_their_own() -> None:
    found = columnar_reader(file_format("PARQUET", {"NULL_IF": ["x"], "BINARY_AS_TEXT": False}))
    assert (found.null_if, found.binary_as_text, found.trim) == (("x",), False, False)
    with pytest.raises(ValueError, match="is not text"):
        text_reader(file_format("ORC"))


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("AUTO", None),
        ("YYYY-MM-DD HH24:MI:SS.FF3 TZHTZM", "yyyy-MM-dd HH:mm:ss.SSS XX"),
        ("yyyy-mm-ddThh24:mi:ss.fftzh:tzm", "yyyy-MM-dd'T'HH:mm:ss.SSSSSSSSSXXX"),
        ('YYYY-MM-DD"T"HH24:MI:SS"Z"', "yyyy-MM-dd'T'HH:mm:ss'Z'"),
        ("DD-MON-YYYY", "dd-MMM-yyyy"),
        ("DD MMMM, YY HH12:MI AM", "dd MMMM, yy hh:mm a"),
        ("YYYYMMDD", "yyyyMMdd"),
        ("[YYYY]", "'['yyyy']'"),
    ],
)
def test_patterns_of_times_become_those_of_spark(text: str, pattern: str | None) -> None:
    assert spark_pattern(text) == pattern
