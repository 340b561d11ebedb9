"""The secrets of a Tidemark connection: masked by Airflow, and kept off command lines."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, quote_plus, urlsplit

from airflow.sdk.log import mask_secret

from tidemark.errors import InvalidArgument
from tidemark.model.foreign_json import parsed

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["SECRET_SPARK_SETTINGS", "is_secret_setting", "mask", "mask_connection", "require_no_password"]

SECRET_SPARK_SETTINGS = r"(?i)secret|password|passphrase|token|access[._-]?key|account[._-]?key|credential|[.]sas[.]"
"""Names of Spark settings with secret values: Spark's own rule, and the names of Azure and others."""

_SECRET_SETTING = re.compile(SECRET_SPARK_SETTINGS)
_SECRET_OPTION = re.compile(r"(?i)key|secret|token|passw|passphrase|credential|sas|connection_string|auth|signature")
_USER_AND_PASSWORD = re.compile(r"://[^:/@]*:(.+)@")
_NO_SECRETS = frozenset({"true", "false", "none", "null", "anon", "default", "cloud", "cache", "browser"})
_SHORTEST_LINE = 5  # of a secret with several lines; Airflow warns of each shorter one
_CORE_MASKER = "airflow._shared.secrets_masker"  # the API server's, beside that of tasks


def mask_connection(extra: Mapping[str, Any], *, password: str | None, store_url: str | None) -> None:
    """Lets Airflow mask every secret of the connection in task logs and rendered fields, in each form of its use.

    These are the password, the passwords in the store's URL, secret storage options with all values below them, and
    secret Spark settings. A value that does not parse is masked as a whole. Airflow does not mask secrets of fewer than
    `[logging] min_length_masked_secret` characters.
    """
    found = [password or "", *_of_url(store_url or "")]
    options = _parsed(extra.get("storage_options"))
    found += _of_options(options, secret=not isinstance(options, Mapping))
    settings = _parsed(extra.get("spark_conf"))
    if isinstance(settings, Mapping):
        found += [str(value) for name, value in settings.items() if is_secret_setting(str(name))]
    else:
        found.append(str(settings))
    mask(*found)


def mask(*secrets: str) -> None:
    """Adds secrets to Airflow's maskers: the task's, its supervisor's and, if it exists, the API server's."""
    forms = {form for secret in secrets if secret.lower() not in _NO_SECRETS for form in _forms(secret)}
    if not forms:
        return
    told: list[JsonValue] = [*sorted(forms)]
    mask_secret(told)
    core = sys.modules.get(_CORE_MASKER)
    if core is not None:
        core.mask_secret(told)


def is_secret_setting(name: str) -> bool:
    """Whether the value of the Spark setting `name` must never be shown."""
    return _SECRET_SETTING.search(name) is not None


def require_no_password(argument: str, location: str) -> None:
    """Nothing, or InvalidArgument without the value: a place is written into specs, logs and the control store."""
    if _USER_AND_PASSWORD.search(location) and urlsplit(location).password:
        problem = "a place must not have a password; put it into the connection's storage options"
        raise InvalidArgument(argument=argument, value="(not shown)", problem=problem)


def _forms(secret: str) -> Iterator[str]:
    """The forms of a secret: as it is, as in URLs, JSON and Python, and line by line as in logs."""
    if secret:
        yield from (secret, quote(secret, safe=""), quote_plus(secret), json.dumps(secret)[1:-1], repr(secret)[1:-1])
        yield from (line for line in secret.splitlines() if len(line) >= _SHORTEST_LINE)


def _of_url(url: str) -> Iterator[str]:
    """The passwords in a URL, even if they make it malformed."""
    yield from _USER_AND_PASSWORD.findall(url)
    if "://" not in url:
        yield url
        return
    try:
        yield urlsplit(url).password or ""
    except ValueError:  # a host in broken brackets
        yield url
    for name, value in parse_qsl(url.partition("?")[2]):
        if _SECRET_OPTION.search(name):
            yield value


def _parsed(value: Any) -> Any:
    if not isinstance(value, str):
        return value or {}
    try:
        return parsed(value)
    except ValueError:
        return value


def _of_options(options: Any, secret: bool = False) -> Iterator[str]:
    """Texts and numbers under a secret name at any depth, and passwords in the URLs of others."""
    if isinstance(options, Mapping):
        for name, value in options.items():
            yield from _of_options(value, secret or _SECRET_OPTION.search(str(name)) is not None)
    elif isinstance(options, list):
        for value in options:
            yield from _of_options(value, secret)
    elif isinstance(options, str):
        yield from (options,) if secret else _USER_AND_PASSWORD.findall(options)
    elif secret and isinstance(options, int | float) and not isinstance(options, bool):
        yield str(options)
