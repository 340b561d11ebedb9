"""Orders to the table writer that change a channel's record, apart from rows: open, drop, and set a token."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from tidemark.channels.model.channels import ChannelRecord
from tidemark.channels.planning.evolution import Evolution
from tidemark.channels.planning.owners import loss_of
from tidemark.channels.planning.records import opened, with_token
from tidemark.errors import ChangeNotCommitted, ChannelNotFound, ChannelTokenLost

__all__ = ["Drop", "Evolve", "Open", "Order", "Pause", "SetToken", "late"]


@dataclass(frozen=True, kw_only=True)
class Order:
    """`done` has the committed record, or the error that refuses the order."""

    noun: ClassVar[str]
    key: str
    table: str
    done: Future[Any] = field(default_factory=Future)

    def record(self, known: ChannelRecord | None, table_id: str, now: datetime) -> ChannelRecord | None:
        """The next record; None to remove it. Raises an error of the tree to refuse the order."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Open(Order):
    """Take the channel, from another writer if it has one. `token`: replaces the committed one unless None."""

    noun: ClassVar[str] = "open"
    by: str
    token: str | None = None

    def record(self, known: ChannelRecord | None, table_id: str, now: datetime) -> ChannelRecord | None:
        """The record of the new owner. Raises ChannelTokenLost."""
        if known is not None and known.token_lost is not None and self.token is None:
            raise ChannelTokenLost(
                channel=self.key, table=self.table, problem=known.token_lost, offset_token=known.offset_token
            )
        taken = opened(known, table_id, by=self.by, token=self.token, now=now)
        return with_token(taken, self.token) if self.token is not None else taken


@dataclass(frozen=True, kw_only=True)
class Drop(Order):
    """Remove the channel and its token. `own`: only if the writer of this record still has it; None in any case.
    `idle_since`: only if it had no row or token since then, in milliseconds since 1970.

    A channel that does not exist, or that another writer has taken since, is left alone.
    """

    noun: ClassVar[str] = "drop"
    own: ChannelRecord | None = None
    idle_since: int | None = None

    def record(self, known: ChannelRecord | None, table_id: str, now: datetime) -> ChannelRecord | None:
        """None, or the record of another owner."""
        if known is None:
            return None
        is_others = self.own is not None and loss_of(self.own, known) is not None
        is_used = self.idle_since is not None and known.last_ingest >= self.idle_since
        return known if is_others or is_used else None


@dataclass(frozen=True, kw_only=True)
class Pause:
    """Let nobody commit rows until then. `done` is set once no row is committed any more."""

    until: datetime
    done: Future[None] = field(default_factory=Future)


@dataclass(frozen=True, kw_only=True)
class Evolve:
    """Change the table's schema. `done` is set once the table has it."""

    evolution: Evolution
    done: Future[None] = field(default_factory=Future)


@dataclass(frozen=True, kw_only=True)
class SetToken(Order):
    """Give the channel another token. Fences nobody."""

    noun: ClassVar[str] = "new token"
    token: str | None

    def record(self, known: ChannelRecord | None, table_id: str, now: datetime) -> ChannelRecord | None:
        """The record with the token. Raises ChannelNotFound."""
        if known is None:
            raise ChannelNotFound(channel=self.key, table=self.table, known="none of that name")
        return with_token(known, self.token)


def late(order: Order | Pause | Evolve, table: str, problem: str, *, is_taken_back: bool) -> ChangeNotCommitted:
    """The error of an order that was not done in time. `is_taken_back`: before its commit began."""
    if isinstance(order, Order):
        change = f"The {order.noun} of channel {order.key}"
    else:
        change = "The pause of channels" if isinstance(order, Pause) else "The change of columns"
    outcome = "It does not happen later." if is_taken_back else "It has begun, and may still happen."
    return ChangeNotCommitted(change=change, table=table, problem=problem, outcome=outcome)
