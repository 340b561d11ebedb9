"""Errors of acts that a person does on an object of any kind."""

from __future__ import annotations

from tidemark.errors.tree import TidemarkError

__all__ = [
    "ActFieldsInvalid",
    "ActNotOffered",
    "ActTooLate",
    "ActUnfinished",
    "ObjectChanged",
    "ObjectError",
    "ObjectGone",
]


class ObjectError(TidemarkError):
    """{problem}"""


class ObjectGone(ObjectError):
    """No {kind} with the uid {uid} exists. It may have been dropped; look at the list again."""


class ObjectChanged(ObjectError):
    """The {kind} {name} has changed since it was shown, so nothing was done: {words}. Look at it again, then decide."""


class ActNotOffered(ObjectError):
    """The {kind} {name} cannot be acted on by {act!r} as it is now ({state}). Offered: {offered}. Nothing was done.
    Look at it again, and choose an act that it offers.
    """


class ActTooLate(ObjectError):
    """Nobody waits any more for {act!r} on the {kind} {name}, so nothing was stored. Look at it again, then decide."""


class ActUnfinished(ObjectError):
    """{act!r} of the {kind} {name} is in the history, but its next step failed: {problem} Look at the object, then
    repeat the act.
    """


class ActFieldsInvalid(ObjectError):
    """Nothing was done, as fields of {act!r} are invalid: {words}. Correct them, and send the act again."""
