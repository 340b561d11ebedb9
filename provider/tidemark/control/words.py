"""Values as one word that fits into an address or an argument, for a caller who hands it back."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

from tidemark.model.foreign_json import parsed_line

__all__ = ["value_of", "word_of"]


def word_of(text: str) -> str:
    """The JSON text as a word, without padding."""
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def value_of(word: str) -> Any:
    """The value of the JSON text of such a word. Raises ValueError for another one.

    A text with half of a surrogate pair is in no such word. Neither a store nor an answer takes it.
    """
    return parsed_line(urlsafe_b64decode(word + "=" * (-len(word) % 4)))
