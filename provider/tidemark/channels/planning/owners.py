"""The fate of a writer's channel, from the record that its table has now."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.channels.model.channels import ChannelRecord, StatusCode
from tidemark.channels.planning.records import time_of

__all__ = ["Ended", "Fate", "fate_of"]


@dataclass(frozen=True)
class Ended:
    """The end of a writer's channel: its code, and who ended it and when."""

    code: StatusCode
    problem: str


Fate = bool | Ended  # True: the commit that was tried is there; False: it is not, and may be tried again


def fate_of(own: ChannelRecord, tried: ChannelRecord | None, found: ChannelRecord | None) -> Fate:
    """The fate of a writer's own record, by the record in the table. `tried`: the next record, if a commit had it."""
    if found is None:
        return Ended(StatusCode.GONE, "it was dropped, or its table was recreated.")
    if tried is not None and _same(found, tried):
        return True
    if found.client_sequencer == own.client_sequencer and found.row_sequencer == own.row_sequencer:
        return False
    if found.ended is not None:
        return Ended(StatusCode.MUST_REOPEN, found.ended)
    if found.client_sequencer != own.client_sequencer:
        at = time_of(found.opened_on)
        return Ended(StatusCode.TAKEN, f"{found.opened_by} opened it at {at:%Y-%m-%d %H:%M:%S} UTC.")
    problem = f"its row sequencer is {found.row_sequencer}, and this writer is at {own.row_sequencer}."
    return Ended(StatusCode.OUT_OF_ORDER, problem)


def _same(found: ChannelRecord, tried: ChannelRecord) -> bool:
    numbers = (tried.client_sequencer, tried.row_sequencer)
    return (found.client_sequencer, found.row_sequencer) == numbers
