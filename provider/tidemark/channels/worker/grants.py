"""The file with the hashes of the writers' tokens. The ingest service reads it when it changes."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from tidemark.channels.model.grants import Grants
from tidemark.errors import TokensFileUnreadable
from tidemark.model.codec import from_json, to_json

__all__ = ["change_grants", "read_grants"]


def read_grants(file: Path) -> Grants:
    """The tokens in the file; none if it does not exist. Raises TokensFileUnreadable."""
    try:
        return from_json(Grants, file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Grants()
    except (OSError, ValueError) as error:
        raise TokensFileUnreadable(path=str(file), problem=str(error)) from error


def change_grants(file: Path, change: Callable[[Grants], Grants]) -> Grants:
    """The tokens after `change`, written whole and for the owner's eyes only. Two changes at once both count.

    Raises TokensFileUnreadable, and what `change` raises.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(file.with_name(f"{file.name}.lock"), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        grants = change(read_grants(file))
        half = file.with_name(f"{file.name}.half")
        with open(os.open(half, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600), "w", encoding="utf-8") as target:
            target.write(to_json(grants))
        half.replace(file)
        return grants
    finally:
        os.close(lock)
