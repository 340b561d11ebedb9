"""Functions of conversion in a transformation, by their names in the source system."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from tidemark.errors import InvalidArgument, NotYetSupported
from tidemark.pipes.planning.datetime_patterns import spark_pattern
from tidemark.pipes.planning.transform_types import Refused, TypeOf

__all__ = ["CASTS", "NUMBER", "NUMBERS", "OWN", "REFUSED", "literal_of", "number_type", "pattern_of"]

NUMBER = TypeOf("DECIMAL(38, 9)", "NUMBER")
"""The type of a text in arithmetic."""

INTEGER = TypeOf("DECIMAL(38, 0)", "INTEGER")
STRING = TypeOf("STRING", "VARCHAR")
CASTS: Mapping[str, TypeOf] = {
    **{name: STRING for name in ("TO_CHAR", "TO_VARCHAR", "AS_CHAR", "AS_VARCHAR")},
    **{name: TypeOf("DOUBLE", "DOUBLE") for name in ("TO_DOUBLE", "AS_DOUBLE", "AS_REAL")},
    **{name: TypeOf("BOOLEAN", "BOOLEAN") for name in ("TO_BOOLEAN", "AS_BOOLEAN")},
    **{name: TypeOf("DATE", "DATE") for name in ("DATE", "TO_DATE", "AS_DATE")},
    **{name: TypeOf("TIMESTAMP_NTZ", "TIMESTAMP_NTZ") for name in ("TO_TIMESTAMP", "TO_TIMESTAMP_NTZ")},
    **{name: TypeOf("TIMESTAMP", name[3:]) for name in ("TO_TIMESTAMP_LTZ", "TO_TIMESTAMP_TZ")},
    **{name: TypeOf("VARIANT", "VARIANT") for name in ("TO_VARIANT", "TO_OBJECT", "TO_ARRAY", "AS_ARRAY", "AS_OBJECT")},
}
NUMBERS = ("TO_NUMBER", "TO_DECIMAL", "TO_NUMERIC", "AS_NUMBER", "AS_DECIMAL", "AS_INTEGER")
REFUSED = {
    "TIME": "Delta tables have no type TIME. Load the value as text.",
    "TO_TIME": "Delta tables have no type TIME. Load the value as text.",
    "XMLGET": "Select the element by its path, as in $1:name.",
    "OBJECT_CONSTRUCT": "Load the columns, and build the object in a query.",
    "ARRAY_CONSTRUCT": "Load the columns, and build the array in a query.",
    "STRIP_NULL_VALUE": "A conversion reads a JSON null as NULL, as in $1:a::string.",
    "HASH": "Its values differ from those of the source system. Use MD5 or SHA2.",
    "TYPEOF": "Convert the value by TRY_TO_NUMBER and the like, and test for NULL.",
    "CHECK_JSON": "Validate the files by VALIDATION_MODE.",
    "FLATTEN": "Load the array, and flatten it in a query.",
}
OWN = frozenset(
    {
        *CASTS,
        *NUMBERS,
        *REFUSED,
        *(f"TRY_{name}" for name in (*CASTS, *NUMBERS, *REFUSED) if name.startswith("TO_")),
        *(
            "TO_BINARY",
            "TRY_TO_BINARY",
            "PARSE_JSON",
            "TRY_PARSE_JSON",
            "IS_NULL_VALUE",
            "GET",
            "GET_PATH",
            "REGEXP_SUBSTR",
        ),
    }
)
"""Functions that sqlglot translates for another purpose. They reach the rewriter as they are written."""


def number_type(name: str, more: list[exp.Expr]) -> TypeOf:
    """The type of TO_NUMBER(value[, precision[, scale]])."""
    if name == "AS_INTEGER":
        return INTEGER
    if not all(isinstance(one, exp.Literal) and not one.is_string for one in more):
        feature = f"{name} with a format"
        raise NotYetSupported(feature=feature, instead=f"Remove the signs: {name}(REPLACE($1, ',')).")
    precision, scale = [*(int(one.name) for one in more), *(38, 0)[len(more) :]][:2]
    return TypeOf(f"DECIMAL({precision}, {scale})", f"NUMBER({precision}, {scale})")


def pattern_of(name: str, more: list[exp.Expr]) -> str | None:
    """The format behind the value, in Spark's letters; None: any. Raises Refused."""
    if not more:
        return None
    text = literal_of(more)
    if text is None:
        raise Refused(f"the format of {name} is a text in quotes")
    try:
        return spark_pattern(text)
    except InvalidArgument as error:
        raise Refused(str(error)) from error


def literal_of(more: list[exp.Expr]) -> str | None:
    """The first argument if it is a text in quotes."""
    return str(more[0].name) if more and more[0].is_string else None
