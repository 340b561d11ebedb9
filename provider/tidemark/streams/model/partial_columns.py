"""The names of columns in tables of partial aggregates."""

from __future__ import annotations

__all__ = ["COUNT", "EPOCH", "EXTREME", "GONE", "GROUP", "MAXIMUM", "MINIMUM", "SIGN"]

GROUP = "tidemark_g"  # the n-th group column ends with its number
COUNT = "tidemark_n"  # the signed number of rows; that of an argument's values ends with its number
EPOCH = "tidemark_e"  # how often the group's extreme values were computed from the base; the last time counts
SIGN = "tidemark_sign"
MINIMUM = "tidemark_min"
MAXIMUM = "tidemark_max"
GONE = "tidemark_was_"  # with "min" or "max": the extreme value of rows that went, which is not kept
EXTREME = (MINIMUM, MAXIMUM, GONE)
