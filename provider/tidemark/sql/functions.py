"""Functions whose value depends on more than a row (R37)."""

from __future__ import annotations

import re
from datetime import datetime

from sqlglot import exp

__all__ = ["at_one_time", "is_bare_star", "makes_rows", "name_of", "of_the_row", "word_of_the_present"]

_PER_ROW = frozenset(
    {
        *("rand", "random", "randn", "randstr", "uniform", "uuid", "shuffle", "monotonically_increasing_id"),
        *("spark_partition_id", "input_file_name", "input_file_block_start", "input_file_block_length"),
        *("aes_encrypt", "java_method", "reflect", "try_reflect"),
        *("current_time", "localtime"),  # no literal of theirs is read by all of Spark's parsers
    }
)
_GENERATORS = frozenset(
    {
        *("explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer", "stack"),
        *("json_tuple", "variant_explode", "variant_explode_outer", "sql_keywords", "collations"),
    }
)
_MICROS = 1_000_000
_PRESENT = re.compile(r"\s*(now|today|tomorrow|yesterday)(?![a-z])\s*\S*\s*", re.IGNORECASE)  # with a zone behind it
_TIME_ALONE = re.compile(r"\s*(T\d{1,2}\s*|T?\d{1,2}:.*)", re.DOTALL)
_MOMENTS = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ)  # not NTZ
_TO_MOMENTS = frozenset({"to_timestamp_ltz", "try_to_timestamp"})  # to_timestamp is a cast
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_TIMES = (exp.DType.DATE, exp.DType.TIMESTAMP, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ)


def name_of(call: exp.Expr) -> str:
    """The name of a called function, in lower case."""
    if isinstance(call, exp.Anonymous):
        return str(call.name).lower()
    return call.sql_name().lower() if isinstance(call, exp.Func) else ""


def of_the_row(call: exp.Expr) -> bool:
    """Whether each call gives another value, so that no two reads agree."""
    return isinstance(call, exp.Rand | exp.Randn | exp.Uuid | exp.CurrentTime) or name_of(call) in _PER_ROW


def makes_rows(call: exp.Expr) -> bool:
    """Whether a call turns one row into several."""
    return isinstance(call, exp.Explode | exp.Unnest) or name_of(call) in _GENERATORS


def is_bare_star(node: exp.Expr) -> bool:
    """Whether it is `*` alone. A count of `* EXCEPT (…)` or `t.*` counts rows by the NULLs in their columns."""
    return isinstance(node, exp.Star) and not any(node.args.values())


def word_of_the_present(node: exp.Expr) -> str | None:
    """The text of a string such as 'today', which Spark reads as a time beside a time; None for anything else.

    Types of columns are not known here, so a text that stays a text counts, too. Texts in a row are one. A time without
    a date, which Spark takes for a time of today, counts where it is cast to a time.
    """
    text, form = _text_of(node), _PRESENT
    if isinstance(node, exp.Cast) and node.to.this in _MOMENTS:
        text, form = _text_of(node.this.unnest()), _TIME_ALONE
    elif name_of(node) in _TO_MOMENTS and len(node.expressions) == 1:
        text, form = _text_of(node.expressions[0].unnest()), _TIME_ALONE
    return text if text is not None and form.fullmatch(text) else None


def _text_of(node: exp.Expr) -> str | None:
    """The text of a constant string; None for anything else."""
    parts = node.expressions if isinstance(node, exp.Concat) else [node]
    if not all(isinstance(part, exp.RawString) or (isinstance(part, exp.Literal) and part.is_string) for part in parts):
        return None
    return "".join(str(part.this) for part in parts)


def at_one_time(tree: exp.Expr, now: datetime) -> exp.Expr:
    """The tree with `now` in place of every call for the time. So both ends of a window see the same time (R37).

    A date is that of `now` in the session's time zone, as it is for `current_date`.
    """
    return tree.transform(lambda node: _pinned(node, now))


def _pinned(node: exp.Expr, now: datetime) -> exp.Expr:
    micros = int(now.timestamp()) * _MICROS + now.microsecond
    moment = exp.Anonymous(this="timestamp_micros", expressions=[exp.Literal.number(micros)])
    if isinstance(node, exp.CurrentTimestamp):
        return moment
    if isinstance(node, exp.CurrentDate):
        zone = node.this
        shown = exp.Anonymous(this="from_utc_timestamp", expressions=[moment, zone]) if zone else moment
        return exp.cast(shown, "date")
    if isinstance(node, exp.Localtimestamp) or name_of(node) == "localtimestamp":
        return exp.cast(moment, exp.DataType.build("TIMESTAMPNTZ"))
    if name_of(node) == "unix_timestamp" and not node.expressions:
        return exp.cast(exp.Literal.number(micros // _MICROS), "bigint")
    if isinstance(node, exp.Cast) and node.this.is_string and node.to.this in _TIMES:
        return _word_pinned(node, moment)
    return node


def _word_pinned(node: exp.Cast, moment: exp.Expr) -> exp.Expr:
    """The cast with `moment` for the words that Spark reads as the present, such as TIMESTAMP'now' and DATE'today'.

    A word with a zone beside it is kept.
    """
    word = str(node.this.this).strip().lower()
    if word == "now":
        return exp.cast(moment, node.to.copy())
    if word not in _DAYS:
        return node
    day: exp.Expr = exp.cast(moment, "date")
    if _DAYS[word]:
        day = exp.Anonymous(this="date_add", expressions=[day, exp.convert(_DAYS[word])])
    return exp.Cast(this=day, to=node.to.copy())
