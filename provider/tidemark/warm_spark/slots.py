"""Slots of a server: the right to run one job in it.

The processes of a job lock the file of its slot. The file names the job's session, so that the server can end it after
the job was killed. A second line says what the job is about, for those that wait.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tidemark.warm_spark.locks import is_held, lock_now
from tidemark.warm_spark.records import ServerRecord

__all__ = ["Slot", "busy_slots", "jobs_in_slots", "slot_files", "take_slot"]


@dataclass(frozen=True)
class Slot:
    """A held slot. `descriptor` is to be inherited by all processes of the job."""

    file: Path
    descriptor: int

    def claim(self, session_id: str, about: str = "") -> None:
        """Names the session that the job is about to open, and the job."""
        os.pwrite(self.descriptor, f"{session_id}\n{about}".encode(), 0)

    @property
    def session_left(self) -> str:
        """The session of a job that ended without leaving it; empty if there is none."""
        return os.pread(self.descriptor, 64, 0).partition(b"\n")[0].decode()

    def clear(self) -> None:
        """Says that nothing of the session runs any more."""
        os.ftruncate(self.descriptor, 0)

    def release(self) -> None:
        """Gives the slot back. Idempotent: a second call is harmless."""
        with suppress(OSError):
            os.close(self.descriptor)


def slot_files(server: Path, slots: int) -> list[Path]:
    """The files of all slots."""
    return [server / f"slot-{number}" for number in range(slots)]


def take_slot(server: ServerRecord, *, is_long: bool = False) -> Slot | None:
    """A free slot, or None. A slot whose last job was killed is not free until the server has ended its session.

    The first of several slots is not for long jobs, so that any number of them leaves one to the others.
    """
    files = slot_files(server.place, server.order.slots)
    for file in (files[1:] or files) if is_long else files:
        try:
            number = lock_now(file)
        except FileNotFoundError:  # the server has ended, and its directory was removed
            return None
        if number is None:
            continue
        slot = Slot(file, number)
        if not slot.session_left:
            return slot
        slot.release()
    return None


def busy_slots(server: Path, slots: int) -> int:
    """How many slots are held now."""
    return sum(is_held(file) for file in slot_files(server, slots))


def jobs_in_slots(server: Path, slots: int) -> list[str]:
    """The jobs that hold slots now, those that have said what they are about."""
    held = [file for file in slot_files(server, slots) if is_held(file)]
    said = []
    for file in held:
        with suppress(FileNotFoundError):  # the server has ended, and its directory was removed
            said.append(file.read_text(encoding="utf-8", errors="replace").partition("\n")[2])
    return [about for about in said if about]
