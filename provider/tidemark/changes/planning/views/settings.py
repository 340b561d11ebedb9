"""The SQL settings that affect a query's meaning. A view stores those of the session that created it."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["settings_of"]

_ALWAYS = (
    "spark.sql.ansi.enabled",
    "spark.sql.session.timeZone",
    "spark.sql.caseSensitive",
    "spark.sql.timestampType",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.decimalOperations.allowPrecisionLoss",
    "spark.sql.ansi.doubleQuotedIdentifiers",
)
_IF_STORED = ("spark.sql.ansi.", "spark.sql.legacy.", "spark.sql.parser.", "spark.sql.charAsVarchar")


def settings_of(stored: Mapping[str, str]) -> dict[str, str | None]:
    """The settings under which a view's text has its original meaning; None is the default, as in Spark's own reads.

    Settings that do not affect the rows are left out.
    """
    found: dict[str, str | None] = {name: stored.get(name) for name in _ALWAYS}
    found |= {name: value for name, value in stored.items() if name.startswith(_IF_STORED)}
    return dict(sorted(found.items()))
