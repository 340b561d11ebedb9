"""Words that several writers have for one object, as one text."""

from __future__ import annotations

__all__ = ["one_text", "stop_words"]


def one_text(*said: str | None) -> str | None:
    """The parts, a sentence before a blank, others before a semicolon. Empty ones are left out; None if all are."""
    text = ""
    for part in filter(None, said):
        between = "" if not text else " " if text.endswith(".") else "; "
        text = f"{text}{between}{part}"
    return text or None


def stop_words(why: str, who: str | None) -> str | None:
    """The reason of a stop, with the person who did it, if a person did; None if neither is known."""
    return ", ".join(filter(None, (why.strip(), f"by {who}" if who else None))) or None
