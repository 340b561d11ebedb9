"""The order of offset tokens, and who judges it."""

from __future__ import annotations

from typing import Any

import pytest

from tidemark.channels.planning.tokens import require_token, require_verifier_name, token_problem, verifier_of
from tidemark.client.ingest_service import ServiceClient
from tidemark.errors import InvalidArgument

Batch = tuple[str | None, str | None, str | None, int]
FOLLOWS: list[Batch] = [
    (None, None, "1", 1),
    ("9", None, "10", 1),
    ("9", "10", "12", 3),
    ("-2", None, "-1", 1),
    ("5", None, "5", 0),
    ("5", None, None, 3),
    ("5", "6", None, 3),
]
DOES_NOT_FOLLOW: list[Batch] = [
    ("10", None, "9", 1),
    ("5", None, "5", 1),
    ("5", None, "4", 0),
    ("5", "5", "7", 2),
    ("5", "8", "7", 2),
    ("5", None, "a.log:6", 1),
    ("a.log:5", None, "6", 1),
    (None, None, "1.5", 1),
]


def test_numeric_tokens_are_whole_numbers_that_grow() -> None:
    numeric = verifier_of("Numeric", strict=True)
    assert [batch for batch in FOLLOWS if token_problem(numeric, *batch) is not None] == []
    assert [batch for batch in DOES_NOT_FOLLOW if token_problem(numeric, *batch) is None] == []


def test_a_strict_order_without_a_verifier_is_refused_with_what_to_give() -> None:
    """It would do nothing."""
    assert verifier_of(None, strict=False) is None
    with pytest.raises(InvalidArgument, match=r"strict_tokens=True: .*verify_tokens too: 'numeric', or a function"):
        verifier_of(None, strict=True)
    with pytest.raises(InvalidArgument, match=r"verify_tokens='rising': known by name: 'numeric'"):
        verifier_of("rising", strict=False)


def test_a_function_is_not_sent_to_another_process() -> None:
    with pytest.raises(InvalidArgument, match=r"verify_tokens=.*must be a name: 'numeric'"):
        require_verifier_name(lambda *_: True)
    with pytest.raises(InvalidArgument, match="must be a name"):
        ServiceClient("http://127.0.0.1:1", "secret").open_channel("c", "orders", verify_tokens=lambda *_: True)


@pytest.mark.parametrize("token", [42, True, 1.5, b"42", "\ud800"])
def test_a_token_that_would_make_a_record_unreadable_is_refused(token: Any) -> None:
    """A record with another type than text is none: its channel would be gone, and its rows would come again."""
    with pytest.raises(InvalidArgument, match=r"offset_token=.*a token is a text"):
        require_token(token)
    with pytest.raises(InvalidArgument, match="a token is a text"):
        ServiceClient("http://127.0.0.1:1", "secret").open_channel("c", "orders", offset_token=token)


@pytest.mark.parametrize("token", [None, "", "42", "a" * 20_000, "😀\0\n"])
def test_a_token_may_be_any_text(token: str | None) -> None:
    require_token(token)
