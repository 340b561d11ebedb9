"""Readers of files: a format in the options of Spark, and the rest that the driver decides itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidemark.errors import NotYetSupported
from tidemark.pipes.model.formats import FileFormat, FileType
from tidemark.pipes.planning.datetime_patterns import spark_pattern
from tidemark.pipes.planning.format_options import AUTO, NONE
from tidemark.pipes.planning.formats import option

__all__ = [
    "ABSENT",
    "ColumnarRead",
    "CsvRead",
    "JsonRead",
    "TextRead",
    "ValueFormats",
    "XmlRead",
    "columnar_reader",
    "text_reader",
]

ABSENT = "\x00\x00"
"""Spark's nullValue: a text that no field has, so that "" in quotes is a text and an absent field is NULL."""

_CHARSETS = {"UTF8": "UTF-8", "ISO88591": "ISO-8859-1"}
_SUFFIXES = {AUTO: None, NONE: "", "GZIP": ".gz", "BZ2": ".bz2", "DEFLATE": ".deflate"}
_NEWLINES = ("\n", "\r\n")


@dataclass(frozen=True)
class ValueFormats:
    """Patterns of Spark for texts of dates and timestamps; None: any that Spark reads. `binary`: HEX, BASE64, UTF8."""

    date: str | None = None
    timestamp: str | None = None
    binary: str = "HEX"


@dataclass(frozen=True)
class CsvRead:
    """Fields of lines. `options`: for `spark.read.csv` and for `from_csv`.

    `separator`: None: a line is one field. `line_separator`: None: any end of a line. `multi_line`: a field in quotes
    may have ends of lines. `suffix`: the end of the files' names by their compression; "" if unpacked; None: any.
    `null_if` holds for fields in quotes, too. `replace_invalid`: otherwise bytes that are no text make an error.
    """

    options: Mapping[str, str]
    separator: str | None
    quote: str | None
    escape: str | None
    encoding: str
    line_separator: str | None
    multi_line: bool
    skip_header: int
    parse_header: bool
    skip_blank_lines: bool
    trim: bool
    null_if: tuple[str, ...]
    empty_field_as_null: bool
    column_count_mismatch_is_error: bool
    replace_invalid: bool
    suffix: str | None
    values: ValueFormats

    @property
    def hides_bytes(self) -> bool:
        """Whether Spark's reader shows bytes that are no text as U+FFFD, where they are to be an error."""
        return self.multi_line and self.encoding == "UTF-8" and not self.replace_invalid


@dataclass(frozen=True)
class JsonRead:
    """Documents. `multi_line`: a file is one document; otherwise a line is. `strip_outer_array`: each element of a
    document that is an array is a row. `trim` and `null_if`: of members that become columns by their names.
    """

    options: Mapping[str, str]
    multi_line: bool
    strip_outer_array: bool
    trim: bool
    null_if: tuple[str, ...]
    replace_invalid: bool
    suffix: str | None
    values: ValueFormats


@dataclass(frozen=True)
class XmlRead:
    """Elements, each a row. `options`: for Spark's reader of XML and for `from_xml`."""

    options: Mapping[str, str]
    suffix: str | None
    values: ValueFormats


@dataclass(frozen=True)
class ColumnarRead:
    """Columns of Parquet, ORC or Avro. `binary_as_text`: bytes for a text column are its UTF-8; otherwise hex."""

    trim: bool
    null_if: tuple[str, ...]
    binary_as_text: bool


TextRead = CsvRead | JsonRead | XmlRead


def text_reader(format: FileFormat) -> TextRead:
    """The reader of a format of text. Raises NotYetSupported for options that Spark cannot honour together."""
    if format.type is FileType.CSV:
        return _csv(format)
    if format.type is FileType.JSON:
        return _json(format)
    if format.type is FileType.XML:
        return _xml(format)
    raise ValueError(f"{format.type} is not text")


def columnar_reader(format: FileFormat) -> ColumnarRead:
    """The reader of a format of columns."""
    if format.type.is_text:
        raise ValueError(f"{format.type} is text")
    binary_as_text = format.type is not FileType.PARQUET or option(format, "BINARY_AS_TEXT")
    return ColumnarRead(option(format, "TRIM_SPACE"), tuple(option(format, "NULL_IF")), binary_as_text)


def _csv(format: FileFormat) -> CsvRead:
    quote = _given(format, "FIELD_OPTIONALLY_ENCLOSED_BY")
    escape = _given(format, "ESCAPE") or quote
    separator = _given(format, "FIELD_DELIMITER")
    record = str(option(format, "RECORD_DELIMITER"))
    line_separator = None if record in _NEWLINES else record
    multi_line = quote is not None and option(format, "MULTI_LINE")
    if multi_line and len(line_separator or "") > 1:
        raise NotYetSupported(
            feature=f"RECORD_DELIMITER = {record!r} with fields in quotes",
            instead="Set MULTI_LINE = FALSE, or use one character.",
        )
    trim, encoding = option(format, "TRIM_SPACE"), _CHARSETS[option(format, "ENCODING")]
    more = {"encoding": encoding, "multiLine": str(multi_line).lower()}
    return CsvRead(
        options={
            **_fields(separator, quote, escape, trim),
            **more,
            **({"lineSep": line_separator} if line_separator else {}),
        },
        separator=separator,
        quote=quote,
        escape=escape,
        encoding=encoding,
        line_separator=line_separator,
        multi_line=multi_line,
        skip_header=option(format, "SKIP_HEADER"),
        parse_header=option(format, "PARSE_HEADER"),
        skip_blank_lines=option(format, "SKIP_BLANK_LINES"),
        trim=trim,
        null_if=tuple(option(format, "NULL_IF")),
        empty_field_as_null=option(format, "EMPTY_FIELD_AS_NULL"),
        column_count_mismatch_is_error=option(format, "ERROR_ON_COLUMN_COUNT_MISMATCH"),
        replace_invalid=option(format, "REPLACE_INVALID_CHARACTERS"),
        suffix=_suffix(format),
        values=_values(format),
    )


def _fields(separator: str | None, quote: str | None, escape: str | None, trim: bool) -> dict[str, str]:
    """Spark's options for the fields of a line."""
    blanks = str(trim).lower()
    return {
        "sep": separator or "\x00",
        "quote": quote or "",
        "escape": escape or "",
        "nullValue": ABSENT,
        "emptyValue": "",
        "ignoreLeadingWhiteSpace": blanks,
        "ignoreTrailingWhiteSpace": blanks,
    }


def _json(format: FileFormat) -> JsonRead:
    strip = option(format, "STRIP_OUTER_ARRAY")
    multi_line = option(format, "MULTI_LINE") or strip
    return JsonRead(
        options={"multiLine": str(multi_line).lower()},
        multi_line=multi_line,
        strip_outer_array=strip,
        trim=option(format, "TRIM_SPACE"),
        null_if=tuple(option(format, "NULL_IF")),
        replace_invalid=_replaces(format),
        suffix=_suffix(format),
        values=_values(format),
    )


def _xml(format: FileFormat) -> XmlRead:
    tag = option(format, "ROW_TAG")
    if not tag:
        raise NotYetSupported(
            feature="XML without the element that is a row",
            instead="Name it in the file format, as in ROW_TAG = 'order'.",
        )
    options = {
        "rowTag": tag,
        "ignoreSurroundingSpaces": str(not option(format, "PRESERVE_SPACE")).lower(),
        "inferSchema": str(not option(format, "DISABLE_AUTO_CONVERT")).lower(),
    }
    return XmlRead(options, _suffix(format), ValueFormats())


def _given(format: FileFormat, name: str) -> str | None:
    found: str = option(format, name)
    return None if found == NONE else found


def _replaces(format: FileFormat) -> bool:
    return bool(option(format, "REPLACE_INVALID_CHARACTERS") or option(format, "IGNORE_UTF8_ERRORS"))


def _suffix(format: FileFormat) -> str | None:
    return _SUFFIXES[option(format, "COMPRESSION")]


def _values(format: FileFormat) -> ValueFormats:
    return ValueFormats(
        spark_pattern(option(format, "DATE_FORMAT")),
        spark_pattern(option(format, "TIMESTAMP_FORMAT")),
        option(format, "BINARY_FORMAT"),
    )
