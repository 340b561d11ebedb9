"""Which of Spark's SQL settings give a query its meaning; a view has kept those of the session that made it."""

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
    """The settings under which a view's text means what it meant; None: the default, as for Spark's own reading.

    Settings that choose among ways to the same rows are left out.
    """
    found: dict[str, str | None] = {name: stored.get(name) for name in _ALWAYS}
    found |= {name: value for name, value in stored.items() if name.startswith(_IF_STORED)}
    return dict(sorted(found.items()))
