"""The fate of a writer's channel, from the record that its table has now."""

from __future__ import annotations

from dataclasses import dataclass

from tidemark.channels.model.channels import ChannelRecord, StatusCode
from tidemark.channels.planning.records import time_of

__all__ = ["Ended", "Fate", "fate_of", "loss_of"]


@dataclass(frozen=True)
class Ended:
    """The end of a writer's channel: its code, and who ended it and when."""

    code: StatusCode
    problem: str


Fate = bool | Ended  # True: the commit that was tried is there; False: it is not, and may be tried again


def fate_of(own: ChannelRecord, tried: ChannelRecord | None, found: ChannelRecord | None) -> Fate:
    """The fate of a writer's own record, by the record in the table. `tried`: the next record, if a commit had it."""
    if found is not None and tried is not None and _numbers(found) == _numbers(tried):
        return True
    loss = loss_of(own, found)
    if loss is not None:
        return loss
    assert found is not None  # without a record the channel is lost
    if found.row_sequencer == own.row_sequencer:
        return False
    problem = f"its row sequencer is {found.row_sequencer}, and this writer is at {own.row_sequencer}."
    return Ended(StatusCode.OUT_OF_ORDER, problem)


def loss_of(own: ChannelRecord, found: ChannelRecord | None) -> Ended | None:
    """The way in which a writer lost its channel, by the record in the table; None if it still has it.

    A channel that was dropped and opened again counts its opens from 1, so the time of its creation counts too.
    """
    if found is None:
        return Ended(StatusCode.GONE, "it was dropped, or its table was recreated.")
    if found.opening == own.opening:
        return None
    if found.ended is not None:
        return Ended(StatusCode.MUST_REOPEN, found.ended)
    at = time_of(found.opened_on)
    return Ended(StatusCode.TAKEN, f"{found.opened_by} opened it at {at:%Y-%m-%d %H:%M:%S} UTC.")


def _numbers(record: ChannelRecord) -> tuple[int, int, int]:
    return record.created_on, record.client_sequencer, record.row_sequencer
