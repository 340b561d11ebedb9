"""Failures of work in threads that nobody waits for: a reader gets words, and the log of the process has the rest."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from tidemark.errors import TidemarkError

__all__ = ["log_failure", "why_unreadable"]

log = logging.getLogger(__name__)


def why_unreadable(error: BaseException) -> str:
    """The reason why the log of a source could not be read, in words. The traceback of an unexpected one is logged."""
    if isinstance(error, TidemarkError | OSError):
        return str(error) or type(error).__name__
    log.error("Reading the log of a source failed unexpectedly", exc_info=error)
    return f"Its log could not be read: {type(error).__name__}. The log of the process has the details."


def log_failure(answer: Future[Any], words: str) -> None:
    """Log why work failed that has ended: an expected error in a line, an unexpected one with its traceback."""
    error = None if answer.cancelled() else answer.exception()
    if isinstance(error, TidemarkError | SQLAlchemyError | OSError):
        log.warning("%s: %s", words, error)
    elif error is not None:
        log.error("%s", words, exc_info=error)
