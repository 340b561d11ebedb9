"""Avro object containers that others have written: their schema, and record by record."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

from tidemark.errors import SourceDriverNotInstalled

__all__ = ["avro_container"]


def avro_container(opened: IO[bytes]) -> tuple[Any, Iterator[Mapping[str, Any]]]:
    """The schema of a file and its records. Both raise ValueError for a file that is none or is damaged. Raises
    SourceDriverNotInstalled.
    """
    fastavro = _fastavro()
    with _damage_named(fastavro):
        found = fastavro.reader(opened)
    return found.writer_schema, _records(fastavro, found)


def _records(fastavro: Any, found: Iterator[Any]) -> Iterator[Mapping[str, Any]]:
    while True:
        with _damage_named(fastavro):
            try:
                record = next(found)
            except StopIteration:
                return
        if not isinstance(record, Mapping):
            raise ValueError("its records are not objects")
        yield record


@contextmanager
def _damage_named(fastavro: Any) -> Iterator[None]:
    """Each wrong byte is another error of the library."""
    damage = (EOFError, zlib.error, struct.error, LookupError, TypeError, AttributeError, ArithmeticError)
    try:
        yield
    except (*damage, fastavro.schema.SchemaParseException) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _fastavro() -> Any:
    try:
        import fastavro
    except ModuleNotFoundError as error:
        command = "pip install 'airflow-provider-tidemark[files]'"
        raise SourceDriverNotInstalled(kind="Avro files", package="fastavro", command=command) from error
    return fastavro
