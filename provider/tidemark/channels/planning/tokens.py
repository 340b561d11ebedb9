"""The order of offset tokens, as a writer gives them. Tokens are texts; their order is the writer's."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tidemark.errors import InvalidArgument
from tidemark.model.foreign_json import plain_text

__all__ = ["VERIFIERS", "TokenVerifier", "require_token", "require_verifier_name", "token_problem", "verifier_of"]

TokenVerifier = Callable[[str | None, str | None, str | None, int], bool]
"""(end token of the batch before, start token, end token, number of rows) → whether the batch may follow."""

_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,100}")


def _numeric(before: str | None, start: str | None, end: str | None, rows: int) -> bool:
    """Whether the tokens are whole numbers that grow with each batch of rows. Without rows a token may stay."""
    given = [token for token in (before, start, end) if token is not None]
    if not all(_WHOLE_NUMBER.fullmatch(token) for token in given):
        return False
    first = start if start is not None else end
    if before is not None and first is not None:
        grows = int(first) > int(before) or (rows == 0 and int(first) == int(before))
        if not grows:
            return False
    return start is None or end is None or int(start) <= int(end)


VERIFIERS: Mapping[str, TokenVerifier] = {"numeric": _numeric}
"""Verifiers by the names that a writer elsewhere can send."""


def require_token(token: object, argument: str = "offset_token") -> None:
    """Raises InvalidArgument for a token that is neither None nor a text in UTF-8. In a channel's record it would make
    all of the record unreadable.
    """
    if token is None or (isinstance(token, str) and plain_text(token) == token):
        return
    problem = f"a token is a text, and this is of type {type(token).__name__}; give str(token)"
    if isinstance(token, str):
        problem = "a token is a text, and this one has an unpaired surrogate"
    raise InvalidArgument(argument=argument, value=ascii(token), problem=problem)


def verifier_of(verify: TokenVerifier | str | None, *, strict: bool) -> TokenVerifier | None:
    """The verifier, as given or by its name. Raises InvalidArgument, also for `strict` without one: it would do
    nothing.
    """
    if verify is None and strict:
        problem = f"nothing judges the tokens; give verify_tokens too: {_names()}, or a function"
        raise InvalidArgument(argument="strict_tokens", value=True, problem=problem)
    if verify is None or not isinstance(verify, str):
        return verify
    found = VERIFIERS.get(verify.lower())
    if found is None:
        raise InvalidArgument(argument="verify_tokens", value=verify, problem=f"known by name: {_names()}")
    return found


def require_verifier_name(verify: object) -> None:
    """Raises InvalidArgument for a function, which cannot be sent to another process."""
    if verify is not None and not isinstance(verify, str):
        problem = f"it is sent to another process, and must be a name: {_names()}"
        raise InvalidArgument(argument="verify_tokens", value=f"({type(verify).__name__})", problem=problem)


def token_problem(
    verify: TokenVerifier | None, before: str | None, start: str | None, end: str | None, rows: int
) -> str | None:
    """The reason why a batch does not follow the one before it; None if it does, or if there is no verifier."""
    if verify is None or verify(before, start, end, rows):
        return None
    return f"the batch with the tokens {start!r} to {end!r} does not follow {before!r} (rows: {rows})."


def _names() -> str:
    return ", ".join(repr(name) for name in VERIFIERS)
