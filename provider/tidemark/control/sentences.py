"""Words that several writers have for one object, as one text."""

from __future__ import annotations

__all__ = ["one_text"]


def one_text(*said: str | None) -> str | None:
    """The parts, a sentence before a blank, others before a semicolon. Empty ones are left out; None if all are."""
    text = ""
    for part in filter(None, said):
        between = "" if not text else " " if text.endswith(".") else "; "
        text = f"{text}{between}{part}"
    return text or None
