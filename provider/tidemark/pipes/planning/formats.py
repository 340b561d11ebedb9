"""File formats: checked, merged and described."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tidemark.errors import InvalidArgument, NotYetSupported
from tidemark.model.foreign_json import whole_number
from tidemark.pipes.model.formats import FileFormat, FileType
from tidemark.pipes.planning.datetime_patterns import spark_pattern
from tidemark.pipes.planning.format_options import AUTO, NONE, OPTIONS, FormatOption, Kind
from tidemark.sql.alike import alike

__all__ = ["defaults_of", "described", "file_format", "file_type", "merged", "option", "value_of"]

_WORDS_OF_NOTHING = (AUTO, NONE)
_ESCAPE = re.compile(r"\\x([0-9a-fA-F]{2})|\\u([0-9a-fA-F]{4})|\\([0-7]{3})|\\(.)", re.DOTALL)
_LETTERS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "b": "\b", "0": "\0"}
_HEX = re.compile(r"0x((?:[0-9a-fA-F]{2})+)")


def file_format(type: str | FileType, options: Mapping[str, Any] | None = None) -> FileFormat:
    """The format with these options, by their names in any case.

    Raises InvalidArgument for a name or a value that does not exist, and NotYetSupported for one that Spark cannot
    honour.
    """
    kind = file_type(type)
    checked = {name.upper(): value_of(kind, name, value) for name, value in (options or {}).items()}
    _require_fit(kind, checked)
    return FileFormat(kind, checked)


def file_type(name: str | FileType) -> FileType:
    """The type of this name in any case. Raises InvalidArgument."""
    try:
        return FileType(str(name).upper())
    except ValueError:
        if str(name).upper() == "CUSTOM":
            raise NotYetSupported(feature="TYPE = CUSTOM", instead=f"Use one of {', '.join(FileType)}.") from None
        problem = f"there is no such type of files; there are {', '.join(FileType)}"
        raise InvalidArgument(argument="TYPE", value=str(name), problem=problem) from None


def value_of(kind: FileType, name: str, value: Any) -> Any:
    """The value of an option as a format has it. Raises InvalidArgument or NotYetSupported."""
    known = OPTIONS[kind]
    if name.upper() not in known:
        close = alike(name, known)
        hint = f"similar names: {', '.join(close)}" if close else f"there are {', '.join(known)}"
        raise InvalidArgument(argument="file format option", value=name, problem=f"{kind} has no such option; {hint}")
    given = known[name.upper()]
    found = _READERS[given.kind](name.upper(), given, value)
    refusal = given.refused.get(found) or (given.refused.get("*") if found != given.default else None)
    if refusal is not None:
        raise NotYetSupported(feature=f"{name.upper()} = {_shown(found)} of a file format {kind}", instead=refusal)
    if name.upper() in ("DATE_FORMAT", "TIMESTAMP_FORMAT"):
        spark_pattern(found, name.upper())
    return found


def merged(base: FileFormat | None, over: FileFormat | None) -> FileFormat:
    """The options of `base` with those of `over` in their place. A format of another type replaces all of them."""
    if base is None or over is None:
        return base or over or FileFormat()
    if base.type is not over.type:
        return over
    return file_format(over.type, {**base.options, **over.options})


def defaults_of(type: FileType) -> Mapping[str, Any]:
    """The value of each option that is not given."""
    return {name: one.default for name, one in OPTIONS[type].items()}


def option(format: FileFormat, name: str) -> Any:
    """The value of an option, or its default."""
    return format.options.get(name, OPTIONS[format.type][name].default)


def described(format: FileFormat) -> tuple[tuple[str, str, str, str], ...]:
    """Rows of DESCRIBE FILE FORMAT: property, property_type, property_value, property_default."""
    first = ("TYPE", str(Kind.TEXT), str(format.type), str(FileType.CSV))
    return first, *(
        (name, str(one.kind), _described(option(format, name)), _described(one.default))
        for name, one in OPTIONS[format.type].items()
    )


def _require_fit(kind: FileType, options: Mapping[str, Any]) -> None:
    """Raises InvalidArgument if two options contradict each other."""
    if options.get("PARSE_HEADER") and options.get("SKIP_HEADER"):
        problem = "PARSE_HEADER = TRUE skips the header itself; leave out one of them"
        raise InvalidArgument(argument="SKIP_HEADER", value=options["SKIP_HEADER"], problem=problem)
    if kind is not FileType.CSV:
        return
    values = {**defaults_of(kind), **options}
    field, record = values["FIELD_DELIMITER"], values["RECORD_DELIMITER"]
    if field in record or record in field:
        problem = f"it overlaps with RECORD_DELIMITER = {record!r}"
        raise InvalidArgument(argument="FIELD_DELIMITER", value=field, problem=problem)


def _flag_of(name: str, _: FormatOption, value: Any) -> bool:
    found = {"TRUE": True, "FALSE": False}.get(str(value).upper())
    if found is None:
        raise InvalidArgument(argument=name, value=value, problem="TRUE or FALSE is needed")
    return found


def _number_of(name: str, _: FormatOption, value: Any) -> int:
    found = None if isinstance(value, bool) else whole_number(str(value))
    if found is None or found < 0:
        raise InvalidArgument(argument=name, value=value, problem="a whole number, at least 0, is needed")
    return found


def _texts_of(name: str, _: FormatOption, value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    texts = tuple(value) if isinstance(value, Iterable) else (None,)
    if not all(isinstance(one, str) for one in texts):
        raise InvalidArgument(argument=name, value=value, problem="a list of texts is needed")
    return texts


def _text_of(name: str, given: FormatOption, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidArgument(argument=name, value=value, problem="a text is needed")
    text = _unescaped(value) if given.escapes else value
    words = _WORDS_OF_NOTHING if given.escapes or given.default in _WORDS_OF_NOTHING else ()
    if text.upper() in (*words, *given.words):
        text = text.upper()
    text = _one_name(text) if name == "ENCODING" else text
    if given.words and text not in given.words:
        problem = f"there are {', '.join(map(_shown, given.words))}"
        raise InvalidArgument(argument=name, value=value, problem=problem)
    if given.longest is not None and text != NONE and len(text) > given.longest:
        raise InvalidArgument(argument=name, value=value, problem="one character, or NONE, is needed")
    if given.escapes and not text:
        raise InvalidArgument(argument=name, value=value, problem="it is empty; NONE means that there is none")
    return text


_READERS: Mapping[Kind, Callable[[str, FormatOption, Any], Any]] = {
    Kind.FLAG: _flag_of,
    Kind.NUMBER: _number_of,
    Kind.TEXTS: _texts_of,
    Kind.TEXT: _text_of,
}


def _one_name(encoding: str) -> str:
    """UTF-8 and utf8 are one encoding, as there."""
    return re.sub(r"[-_ ]", "", encoding).upper()


def _unescaped(text: str) -> str:
    r"""The characters that a text such as 0x7c, \x7c, \174 or \t means. A lone backslash is itself."""
    if (found := _HEX.fullmatch(text)) is not None:
        return bytes.fromhex(found[1]).decode("utf-8", errors="replace")
    return _ESCAPE.sub(lambda one: _character(*one.groups()), text) if len(text) > 1 else text


def _character(hexadecimal: str | None, unicode: str | None, octal: str | None, letter: str | None) -> str:
    if hexadecimal or unicode:
        return chr(int(hexadecimal or unicode or "", 16))
    return chr(int(octal, 8)) if octal else _LETTERS.get(letter or "", letter or "")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    return value if isinstance(value, str) and value.isalnum() else repr(value)


def _described(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_escaped, value))}]"
    return _escaped(str(value))


def _escaped(text: str) -> str:
    return text.encode("unicode_escape").decode("ascii") if not text.isprintable() else text
