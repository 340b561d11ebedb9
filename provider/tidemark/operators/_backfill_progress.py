"""The progress of a backfill: its job writes it beside its result, and the task logs a line when it has changed."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidemark.model.jobs import JobSpec
    from tidemark.replication.model.replication import BackfillProgress

__all__ = ["read_progress"]

log = logging.getLogger(__name__)


def read_progress(spec: JobSpec) -> BackfillProgress | None:
    """The newest that the job has said; None before its first word, or where it cannot be read now. Never raises for
    a file that is being written: the next look sees it whole.
    """
    from tidemark.hooks._job_files import local_path
    from tidemark.model.codec import from_json
    from tidemark.replication.model.replication import BackfillProgress

    try:
        return from_json(BackfillProgress, Path(f"{local_path(spec.result_uri)}.progress").read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
