"""Documents that announce files: which files below a location they mean."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_plus, urlsplit

from tidemark.model.foreign_json import parsed
from tidemark.pipes.model.notifications import Announced
from tidemark.pipes.planning.named_files import LONGEST_NAME

__all__ = ["announced_files"]

_DEEPEST = 3  # envelopes around a document
_SHOWN = 60  # characters of a bad value
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_ONE_NAME = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
_AZURE = frozenset({"abfs", "abfss", "az", "adl", "wasb", "wasbs"})
_BLOB = re.compile(r"/blobServices/default/containers/([^/]+)/blobs/(.+)", re.DOTALL)


class _UnknownError(Exception):
    """The document, or a part of it, has no known form."""


@dataclass(frozen=True)
class _Place:
    """A file: its URI in one form, or its name behind the location and prefix."""

    uri: str | None = None
    name: str = ""


Found = Iterator[_Place | _UnknownError | None]  # None: an event that brings no file


def announced_files(text: str, location: str, prefix: str = "") -> Announced:
    """The files of a document whose names begin with `prefix` below `location`, a canonical URI. The names are those
    behind the prefix, in the order of the document.

    Known forms are events of S3, also from SNS or EventBridge, those of Google and Azure, and {"files": ["a.csv", …]}.
    The last has names behind the prefix, or URIs. A document that is not understood has a `problem`, and so has one of
    several events that is not. Nothing is raised.
    """
    root, files, others, problem = _one_form(location), dict[str, None](), 0, None
    for found in _guarded(text):
        if isinstance(found, _UnknownError):
            problem = problem or str(found)
            continue
        name = None if found is None else _name_of(found, root, prefix)
        if name is None:
            others += 1
        else:
            files[name] = None
    return Announced(tuple(files), others, problem)


def _guarded(text: str) -> Found:
    try:
        yield from _of_text(text, 0)
    except RecursionError:
        yield _UnknownError("it is nested too deeply")


def _of_text(text: str, depth: int) -> Found:
    try:
        text.encode()
        document = parsed(text)
    except UnicodeEncodeError:
        yield _UnknownError("it is not UTF-8")
        return
    except ValueError as error:
        yield _UnknownError(f"it is not JSON: {error}")
        return
    yield from _of_document(document, depth)


def _of_document(document: Any, depth: int) -> Found:
    """The files of a document, or of each of a list of documents."""
    if depth > _DEEPEST:
        yield _UnknownError("it is nested too deeply")
    elif isinstance(document, list):
        for one in document:
            yield from _of_document(one, depth + 1)
    elif not isinstance(document, dict):
        yield _UnknownError(f"it is not an object: {_short(document)}")
    else:
        for form in _FORMS:
            found = form(document, depth)
            if found is not None:
                yield from _checked(found)
                return
        yield _UnknownError(f"it has no known form; its fields are {', '.join(map(_short, document)) or 'none'}")


def _checked(found: Found) -> Found:
    """The files of one form. A field that has another type than the form says is a problem of the document."""
    try:
        yield from found
    except _UnknownError as error:
        yield error


def _plain(document: dict[str, Any], depth: int) -> Found | None:
    if "files" not in document:
        return None
    files = document["files"]
    if not isinstance(files, list):
        return iter([_UnknownError('"files" must be a list of names: {"files": ["a.csv"]}')])
    return (_of_name(one) for one in files)


def _of_name(name: Any) -> _Place | _UnknownError:
    if not isinstance(name, str):
        return _UnknownError(f'"files" must be a list of names, not of {_short(name)}')
    return _Place(uri=_one_form(name)) if _URI.match(name) else _Place(name=name)


def _s3_records(document: dict[str, Any], depth: int) -> Found | None:
    if document.get("Event") == "s3:TestEvent":
        return iter([None])
    records = document.get("Records")
    return (_s3_record(record) for record in records) if isinstance(records, list) else None


def _s3_record(record: Any) -> _Place | _UnknownError | None:
    try:
        event = _text(record, "eventName").removeprefix("s3:")
        if not event.startswith("ObjectCreated:"):
            return None
        key = unquote_plus(_text(record, "s3", "object", "key"), errors="strict")
        return _Place(uri=f"s3://{_text(record, 's3', 'bucket', 'name')}/{key}")
    except UnicodeDecodeError:
        return _UnknownError("the key of an object is not UTF-8")
    except _UnknownError as error:
        return error


def _event_bridge(document: dict[str, Any], depth: int) -> Found | None:
    if not isinstance(document.get("detail-type"), str) or document.get("source") != "aws.s3":
        return None
    if document["detail-type"] != "Object Created":
        return iter([None])
    detail = document.get("detail")
    return _one(lambda: f"s3://{_text(detail, 'bucket', 'name')}/{_text(detail, 'object', 'key')}")


def _sns(document: dict[str, Any], depth: int) -> Found | None:
    message = document.get("Message")
    if document.get("Type") != "Notification" or not isinstance(message, str):
        return None
    return _of_text(message, depth + 1) if depth < _DEEPEST else iter([_UnknownError("it is nested too deeply")])


def _google(document: dict[str, Any], depth: int) -> Found | None:
    """An event of Eventarc, a message of Pub/Sub with its attributes, or the object itself."""
    kind = document.get("type")
    if isinstance(kind, str) and kind.startswith("google.cloud.storage.object."):
        is_new = kind.endswith(".finalized")
        return _one(lambda: _google_object(document, "data", "bucket", "name")) if is_new else iter([None])
    if document.get("kind") == "storage#object":
        return _one(lambda: f"gs://{_text(document, 'bucket')}/{_text(document, 'name')}")
    message = document.get("message", document)
    attributes = message.get("attributes") if isinstance(message, dict) else None
    if not isinstance(attributes, dict) or "objectId" not in attributes:
        return None
    is_new = attributes.get("eventType") == "OBJECT_FINALIZE"
    return _one(lambda: _google_object(message, "attributes", "bucketId", "objectId")) if is_new else iter([None])


def _google_object(document: dict[str, Any], field: str, bucket: str, name: str) -> str:
    return f"gs://{_text(document, field, bucket)}/{_text(document, field, name)}"


def _azure(document: dict[str, Any], depth: int) -> Found | None:
    kind = document.get("eventType", document.get("type"))
    if not isinstance(kind, str) or not kind.startswith("Microsoft.Storage."):
        return None
    return _one(lambda: _azure_blob(document)) if kind == "Microsoft.Storage.BlobCreated" else iter([None])


def _azure_blob(document: dict[str, Any]) -> str:
    named = _BLOB.fullmatch(_text(document, "subject"))
    if named is None:
        raise _UnknownError("its subject names no blob")
    account = _host(_text(document, "data", "url")).partition(".")[0]
    return f"azure://{account}/{named[1]}/{named[2]}"


_FORMS: tuple[Callable[[dict[str, Any], int], Found | None], ...] = (
    *(_s3_records, _event_bridge, _sns, _google, _azure, _plain),
)


def _one(uri: Callable[[], str]) -> Found:
    """One file, which is read when the form is checked."""
    yield _Place(uri=uri())


def _text(document: Any, *path: str) -> str:
    """The text at a path. Raises _UnknownError."""
    found = document
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    if not isinstance(found, str) or not found:
        raise _UnknownError(f"it has no text at {'.'.join(path)}")
    return found


def _name_of(place: _Place, root: str, prefix: str) -> str | None:
    """The name behind the prefix; None if the file is elsewhere, or cannot be the name of one."""
    uri, base = place.uri, root.rstrip("/")
    if uri is None and place.name.startswith(f"{base.removeprefix('file://')}/"):
        uri = f"file://{place.name}"
    if uri is None:
        name = place.name.lstrip("/") if not prefix or prefix.endswith("/") else place.name
        return name if _can_be(f"{prefix}{name}") else None
    if not _has_account(base):
        uri, base = _no_account(uri), _no_account(base)
    if not uri.startswith(start := f"{base}/{prefix}"):
        return None
    return uri[len(start) :] if _can_be(uri[len(base) + 1 :]) else None


def _can_be(name: str) -> bool:
    if any(part in ("", ".", "..") for part in name.split("/")) or "\0" in name:
        return False
    try:
        return len(name.encode()) <= LONGEST_NAME
    except UnicodeEncodeError:
        return False


def _one_form(uri: str) -> str:
    """One text for each place, by any name of its scheme: azure://account/container/path for all of Azure's. The
    account is `*` where the URI has none.
    """
    scheme, colon, rest = uri.partition("://")
    kind = scheme.lower()
    if not colon or kind not in _AZURE:
        return f"{_ONE_NAME.get(kind, kind)}://{rest}" if colon else uri
    authority, _, path = rest.partition("/")
    container, at, host = authority.partition("@")
    return f"azure://{host.partition('.')[0] if at else '*'}/{container}/{path}"


def _has_account(root: str) -> bool:
    return not root.startswith("azure://*/")


def _no_account(uri: str) -> str:
    """Azure's URI without its account."""
    if not uri.startswith("azure://"):
        return uri
    return "azure://*/" + uri.removeprefix("azure://").partition("/")[2]


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _short(value: Any) -> str:
    try:
        text = value if isinstance(value, str) else json.dumps(value)
    except (ValueError, RecursionError):
        text = type(value).__name__
    text = text if text.isprintable() else ascii(text)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
