"""The answers of begin and consume."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.delivery.model.transactions import CommitResult, Transaction
from tidemark.model.statements import TransactionKey

__all__ = ["Begun", "Consumed", "Delivered", "Opened"]


@dataclass(frozen=True)
class Opened:
    """Windows are pinned and the plan is written ahead: submit, then commit.

    `finished`: results of others' transactions that were taken over on the way; announce them too (I10).
    """

    transaction: Transaction
    finished: tuple[CommitResult, ...] = ()


@dataclass(frozen=True)
class Delivered:
    """Nothing is left to do but to announce `result` (step 16).

    `fresh`: committed just now, since there was nothing to read. Otherwise an earlier attempt had committed it, or the
    key `by` finished it after this one's lease had run out (step 4).
    """

    result: CommitResult
    fresh: bool
    by: TransactionKey | None = None
    finished: tuple[CommitResult, ...] = ()


Begun = Opened | Delivered


@dataclass(frozen=True)
class Consumed:
    """The outcome of one whole consumption. `delivered_before`: an earlier attempt had; only the event is due again."""

    result: CommitResult
    delivered_before: bool
    finished: tuple[CommitResult, ...] = ()
