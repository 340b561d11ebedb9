"""Options of file formats: their names in the source system, their values and their defaults, by type of file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tidemark.pipes.model.formats import FileType

__all__ = ["AUTO", "NONE", "OPTIONS", "FormatOption", "Kind"]

AUTO = "AUTO"
NONE = "NONE"


class Kind(StrEnum):
    """The kinds of values. The words are those of DESCRIBE."""

    FLAG = "Boolean"
    NUMBER = "Integer"
    TEXT = "String"
    TEXTS = "List"


@dataclass(frozen=True)
class FormatOption:
    """One option. `words`: the only values of a text; empty: any text. `refused`: values that cannot be honoured, and
    the way out; "*" stands for any value but the default. `escapes`: the text may be written as 0x7c or an escape.
    """

    kind: Kind
    default: Any
    words: tuple[str, ...] = ()
    refused: Mapping[Any, str] = field(default_factory=dict)
    escapes: bool = False
    longest: int | None = None


def _flag(default: bool, other: str | None = None) -> FormatOption:
    """`other`: why the other value is refused."""
    return FormatOption(Kind.FLAG, default, refused={} if other is None else {not default: other})


def _texts(default: tuple[str, ...] = ()) -> FormatOption:
    return FormatOption(Kind.TEXTS, default)


_UNPACK = "Unpack the files, or pack them with GZIP, BZ2 or DEFLATE."
_NO_CODEC = dict.fromkeys(("BROTLI", "LZO", "RAW_DEFLATE", "ZSTD"), _UNPACK)
_COMPRESSION = FormatOption(
    Kind.TEXT, AUTO, (AUTO, "GZIP", "BZ2", "BROTLI", "ZSTD", "DEFLATE", "RAW_DEFLATE", NONE), _NO_CODEC
)
_DATE = FormatOption(Kind.TEXT, AUTO)
_TIME = FormatOption(Kind.TEXT, AUTO, refused={"*": "Delta tables have no type TIME. Load the values as text."})
_BINARY = FormatOption(Kind.TEXT, "HEX", ("HEX", "BASE64", "UTF8"))
_VALUES = {"DATE_FORMAT": _DATE, "TIME_FORMAT": _TIME, "TIMESTAMP_FORMAT": _DATE, "BINARY_FORMAT": _BINARY}
_SKIPS_MARK = _flag(True, "Spark never takes a byte order mark for data.")
_ENCODINGS = ("UTF8", "ISO88591")
_NO_XML = "A file with bytes that are not UTF-8 is no XML: convert it to UTF-8."
_CONVERT = "Convert the files to UTF-8."
_OTHER_ENCODINGS = (
    *("BIG5", "EUCJP", "EUCKR", "GB18030", "IBM420", "IBM424", "IBM949", "ISO2022CN", "ISO2022JP", "ISO2022KR"),
    *("ISO88592", "ISO88595", "ISO88596", "ISO88597", "ISO88598", "ISO88599", "ISO885915", "KOI8R", "SHIFTJIS"),
    *("UTF16", "UTF16BE", "UTF16LE", "UTF32", "UTF32BE", "UTF32LE"),
    *(f"WINDOWS{page}" for page in (874, 949, *range(1250, 1257))),
)

_CSV = {
    "COMPRESSION": _COMPRESSION,
    "RECORD_DELIMITER": FormatOption(
        Kind.TEXT, "\n", refused={NONE: "A file without ends of lines has one row: load it as a line."}, escapes=True
    ),
    "FIELD_DELIMITER": FormatOption(Kind.TEXT, ",", escapes=True),
    "MULTI_LINE": _flag(True),
    "FILE_EXTENSION": FormatOption(Kind.TEXT, ""),
    "PARSE_HEADER": _flag(False),
    "SKIP_HEADER": FormatOption(Kind.NUMBER, 0),
    "SKIP_BLANK_LINES": _flag(False),
    **_VALUES,
    "ESCAPE": FormatOption(Kind.TEXT, NONE, escapes=True, longest=1),
    "ESCAPE_UNENCLOSED_FIELD": FormatOption(
        Kind.TEXT,
        NONE,
        refused={"*": "Spark knows escapes in quoted fields only: quote the fields, and name ESCAPE."},
        escapes=True,
        longest=1,
    ),
    "TRIM_SPACE": _flag(False),
    "FIELD_OPTIONALLY_ENCLOSED_BY": FormatOption(Kind.TEXT, NONE, (NONE, "'", '"'), escapes=True),
    "NULL_IF": _texts(("\\N",)),
    "ERROR_ON_COLUMN_COUNT_MISMATCH": _flag(True),
    "REPLACE_INVALID_CHARACTERS": _flag(False),
    "EMPTY_FIELD_AS_NULL": _flag(True),
    "SKIP_BYTE_ORDER_MARK": _SKIPS_MARK,
    "ENCODING": FormatOption(
        Kind.TEXT, "UTF8", (*_ENCODINGS, *_OTHER_ENCODINGS), dict.fromkeys(_OTHER_ENCODINGS, _CONVERT)
    ),
}
_JSON = {
    "COMPRESSION": _COMPRESSION,
    **_VALUES,
    "TRIM_SPACE": _flag(False),
    "MULTI_LINE": _flag(False),
    "NULL_IF": _texts(),
    "FILE_EXTENSION": FormatOption(Kind.TEXT, ""),
    "ENABLE_OCTAL": _flag(False, "Write the numbers as decimal ones."),
    "ALLOW_DUPLICATE": _flag(False, "Spark's variants have a name once: such a row is in error."),
    "STRIP_OUTER_ARRAY": _flag(False),
    "STRIP_NULL_VALUES": _flag(False, "A path reads a null and an absent value as NULL either way."),
    "REPLACE_INVALID_CHARACTERS": _flag(False),
    "IGNORE_UTF8_ERRORS": _flag(False),
    "SKIP_BYTE_ORDER_MARK": _SKIPS_MARK,
}
_XML = {
    "COMPRESSION": _COMPRESSION,
    "ROW_TAG": FormatOption(Kind.TEXT, ""),
    "IGNORE_UTF8_ERRORS": _flag(False, _NO_XML),
    "PRESERVE_SPACE": _flag(False),
    "STRIP_OUTER_ELEMENT": _flag(False),
    "DISABLE_AUTO_CONVERT": _flag(False),
    "DISABLE_SNOWFLAKE_DATA": _flag(False, "Tags of the source system have no meaning here in any case."),
    "REPLACE_INVALID_CHARACTERS": _flag(False, _NO_XML),
    "SKIP_BYTE_ORDER_MARK": _SKIPS_MARK,
}
_COLUMNAR = {
    "TRIM_SPACE": _flag(False),
    "REPLACE_INVALID_CHARACTERS": _flag(False, "Texts of these files are UTF-8 by their specification."),
    "NULL_IF": _texts(),
}
_WHOLE_FILE = "Unpack the files: their blocks are compressed by their own codec."
_PACKED = ("GZIP", "BZ2", "BROTLI", "ZSTD", "DEFLATE", "RAW_DEFLATE")
_AVRO = {
    "COMPRESSION": FormatOption(Kind.TEXT, AUTO, (AUTO, *_PACKED, NONE), dict.fromkeys(_PACKED, _WHOLE_FILE)),
    **_COLUMNAR,
}
_PARQUET = {
    "COMPRESSION": FormatOption(Kind.TEXT, AUTO, (AUTO, "LZO", "SNAPPY", NONE), {"LZO": _UNPACK}),
    "SNAPPY_COMPRESSION": _flag(True),
    "BINARY_AS_TEXT": _flag(True),
    "USE_LOGICAL_TYPE": _flag(True, "Spark always reads logical types."),
    "USE_VECTORIZED_SCANNER": _flag(True),
    **_COLUMNAR,
}

OPTIONS: Mapping[FileType, Mapping[str, FormatOption]] = {
    FileType.CSV: _CSV,
    FileType.JSON: _JSON,
    FileType.XML: _XML,
    FileType.AVRO: _AVRO,
    FileType.ORC: _COLUMNAR,
    FileType.PARQUET: _PARQUET,
}
"""All options by type. Four defaults differ from those of the source system, as Spark cannot honour them.

ESCAPE_UNENCLOSED_FIELD is NONE: a backslash in an unquoted field is data. MULTI_LINE of JSON is FALSE: a line is a
document. USE_LOGICAL_TYPE is TRUE. USE_VECTORIZED_SCANNER is TRUE; its other value changes nothing here.
FILE_EXTENSION and SNAPPY_COMPRESSION concern the unloading of tables, and change nothing.
"""
