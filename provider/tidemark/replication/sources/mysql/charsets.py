"""Character sets by the number of a collation, as the log names them, and how their bytes become texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tidemark.replication.sources.mysql.connection import Connection, rows_of

__all__ = ["BINARY", "Charset", "Charsets", "charsets_of", "decoder_of", "is_known"]

BINARY = 63  # the collation of what is no text
_CODECS = {
    "ascii": "ascii", "big5": "big5", "cp1250": "cp1250", "cp1251": "cp1251", "cp1256": "cp1256", "cp1257": "cp1257",
    "cp850": "cp850", "cp852": "cp852", "cp866": "cp866", "cp932": "cp932", "eucjpms": "euc_jp", "euckr": "cp949",
    "gb18030": "gb18030", "gb2312": "gb2312", "gbk": "gbk", "greek": "iso8859-7", "hebrew": "iso8859-8",
    "koi8r": "koi8-r", "koi8u": "koi8-u", "latin2": "iso8859-2", "latin5": "iso8859-9", "latin7": "iso8859-13",
    "macce": "mac_latin2", "macroman": "mac_roman", "sjis": "shift_jis", "tis620": "tis-620", "ucs2": "utf-16-be",
    "ujis": "euc_jp", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be", "utf8": "utf-8",
    "utf8mb3": "utf-8", "utf8mb4": "utf-8",
}  # fmt: skip
_LATIN1 = {  # of the bytes that cp1252 has and ISO 8859-1 does not; others stay the control characters that they are
    code: text for code in range(0x80, 0xA0) if (text := bytes([code]).decode("cp1252", "ignore"))
}
_OTHERS = {  # characters of a codec, and those that the servers have for the same bytes
    "cp866": {0x2116: 0x207F, 0xA4: 0xB2},
    "eucjpms": {0x301C: 0xFF5E, 0x2016: 0x2225, 0x2212: 0xFF0D, 0xA2: 0xFFE0, 0xA3: 0xFFE1, 0xAC: 0xFFE2, 0xA6: 0xFFE4},
    "gb18030": {0xE7C7: 0x1E3F, 0x1E3F: 0xE7C7},
    "greek": {0x2018: 0x02BD, 0x2019: 0x02BC},
    "hebrew": {0xAF: 0x203E},
    "koi8u": {0x2219: 0x2022},
    "sjis": {0xFF3C: 0x5C},
    "ujis": {0xFF3C: 0x5C},
}

Decoder: TypeAlias = Callable[[bytes], str]


@dataclass(frozen=True)
class Charset:
    """`widest`: bytes that a character has at most."""

    name: str
    widest: int


Charsets: TypeAlias = Mapping[int, Charset]
"""By the number of a collation."""


def charsets_of(connection: Connection) -> Charsets:
    """All that the server knows."""
    widths = {str(name): int(width) for name, width in rows_of(connection, _WIDTHS)}
    found = rows_of(connection, "SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATIONS WHERE ID IS NOT NULL")
    if _has_full_names(connection):  # where a collation has a number for each character set
        found += rows_of(
            connection, "SELECT ID, CHARACTER_SET_NAME FROM information_schema.COLLATION_CHARACTER_SET_APPLICABILITY"
        )
    return {int(number): Charset(str(name), widths[str(name)]) for number, name in found if name in widths}


_WIDTHS = "SELECT CHARACTER_SET_NAME, MAXLEN FROM information_schema.CHARACTER_SETS"
_FULL_NAMES = """
SELECT 1 FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = 'information_schema' AND TABLE_NAME = 'COLLATION_CHARACTER_SET_APPLICABILITY'
  AND COLUMN_NAME = 'ID'
"""


def _has_full_names(connection: Connection) -> bool:
    return bool(rows_of(connection, _FULL_NAMES))


def is_known(charset: str) -> bool:
    """Whether it has a codec."""
    return charset in ("latin1", *_CODECS)


def decoder_of(charset: str) -> Decoder:
    """From bytes to text. Raises LookupError for a character set that has no codec in Python."""
    if charset == "latin1":
        return lambda data: data.decode("latin-1").translate(_LATIN1)
    codec, others = _CODECS[charset], _OTHERS.get(charset)
    if others is not None:
        return lambda data: data.decode(codec).translate(others)
    return lambda data: data.decode(codec)
