"""Errors of statements in the SQL of the source system."""

from __future__ import annotations

from tidemark.errors.tree import TidemarkError

__all__ = ["SqlCompilationError"]


class SqlCompilationError(TidemarkError):
    """SQL compilation error, line {line}, column {column}: {problem}{marked}"""
