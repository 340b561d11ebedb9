"""Errors of a storage's client, as errors of our tree. A missing file is still a FileNotFoundError."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tidemark.errors import StorageRefused, StorageUnreachable

__all__ = ["is_of_storage", "storage_errors_named"]

_NOT_THERE = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
_CLIENT_ERRORS = (  # of clients that may not be installed: those that are no OSErrors
    ("botocore.exceptions", "BotoCoreError"),
    ("botocore.exceptions", "ClientError"),
    ("aiohttp", "ClientError"),
    ("azure.core.exceptions", "AzureError"),
    ("gcsfs.retry", "HttpError"),
    ("google.auth.exceptions", "GoogleAuthError"),
)
_REFUSALS = ("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "ClientAuthenticationError")
_LONGEST = 300


@contextmanager
def storage_errors_named(location: str, *, misuse: bool = True) -> Iterator[None]:
    """StorageRefused or StorageUnreachable in place of errors of the storage's client about `location`.

    `misuse`: also in place of the ValueError or TypeError that clients raise for wrong options.
    """
    try:
        yield
    except _NOT_THERE:
        raise
    except PermissionError as error:
        raise StorageRefused(place=location, problem=_message_of(error)) from error
    except OSError as error:
        if not is_of_storage(error) and not misuse:
            raise  # of the file's reader, not of the storage
        raise StorageUnreachable(place=location, problem=_message_of(error)) from error
    except _client_errors() as error:
        refused = type(error).__name__ in _REFUSALS
        raise (StorageRefused if refused else StorageUnreachable)(place=location, problem=_message_of(error)) from error
    except (ValueError, TypeError, ImportError) as error:
        if not misuse:
            raise
        raise StorageUnreachable(place=location, problem=_message_of(error)) from error


def is_of_storage(error: Exception) -> bool:
    """Whether an OSError is the system's or the network's, and not a reader's about the content of a file."""
    return isinstance(error, OSError) and (error.errno is not None or isinstance(error, TimeoutError))


def _client_errors() -> tuple[type[Exception], ...]:
    found = ((sys.modules.get(module), name) for module, name in _CLIENT_ERRORS)
    return tuple(getattr(module, name) for module, name in found if module is not None and hasattr(module, name))


def _message_of(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return f"{type(error).__name__}: {text[:_LONGEST]}"
