"""The order of offset tokens, as a writer gives them. Tokens are texts; their order is the writer's."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["TokenVerifier", "token_problem"]

TokenVerifier = Callable[[str | None, str | None, str | None, int], bool]
"""(end token of the batch before, start token, end token, number of rows) → whether the batch may follow."""


def token_problem(
    verify: TokenVerifier | None, before: str | None, start: str | None, end: str | None, rows: int
) -> str | None:
    """The reason why a batch does not follow the one before it; None if it does, or if there is no verifier."""
    if verify is None or verify(before, start, end, rows):
        return None
    return f"the batch with the tokens {start!r} to {end!r} does not follow {before!r} (rows: {rows})."
