"""YARN's REST interface: applications of the resource manager, and containers and logs of node managers.

Every request has a time-out for each read, and one for the whole answer. Each names the user, who submitted the
drivers: YARN with ACLs hides applications from others.
"""

from __future__ import annotations

import getpass
import http.client
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from tidemark.errors import ApplicationUnknown, ClusterRefused, ClusterUnreachable, InvalidArgument
from tidemark.model.foreign_json import parsed
from tidemark.model.yarn import (
    NodeView,
    YarnApplication,
    application_of,
    applications_of,
    node_view,
    started_on,
)

__all__ = ["SECONDS_FOR_AN_ANSWER", "ResourceManager", "addresses_from"]

SECONDS_FOR_AN_ANSWER = 10.0
_MOST_BYTES = 4 << 20
_LOG_BYTES = 8192
_LOG_LINES = 25  # of each
_LOGS = ("stdout", "stderr")

T = TypeVar("T")


class _NotFound(Exception):
    """The server answers, and knows no such thing."""


class ResourceManager:
    """The resource managers at `addresses`. One of them is active. It has no state, so threads may share it.

    `user`: who asks, by default the user who submits drivers here; empty for nobody.
    """

    def __init__(
        self, addresses: Sequence[str], *, user: str | None = None, seconds: float = SECONDS_FOR_AN_ANSWER
    ) -> None:
        self.addresses = tuple(addresses)
        self.user = _own_user() if user is None else user
        self._seconds = seconds

    @property
    def name(self) -> str:
        """The name of the cluster, the same on each worker."""
        return f"YARN at {', '.join(sorted(self.addresses))}"

    def page_of(self, application: YarnApplication) -> str:
        """The page of an application: of its driver while it runs, of the resource manager else."""
        if application.tracking_url.startswith(("http://", "https://")):
            return application.tracking_url
        return f"{self.addresses[0]}/cluster/app/{quote(application.id)}"

    def application(self, application_id: str) -> YarnApplication:
        """The application as it is. Raises ApplicationUnknown, ClusterUnreachable, ClusterRefused."""
        try:
            found = self._ask(f"/ws/v1/cluster/apps/{quote(application_id)}", application_of)
        except _NotFound:
            raise ApplicationUnknown(address=self._shown, application=application_id) from None
        return self._shown_whole(found)

    def started_at(self) -> datetime:
        """The start of the active manager's process. Raises ClusterUnreachable, ClusterRefused."""
        try:
            return datetime.fromtimestamp(self._ask("/ws/v1/cluster/info", started_on) / 1000, UTC)
        except _NotFound:
            raise ClusterRefused(
                address=self._shown, request="information on the cluster", problem="not found"
            ) from None

    def tagged(self, tag: str) -> tuple[YarnApplication, ...]:
        """All applications with the tag, the newest first. Raises ClusterUnreachable, ClusterRefused."""
        try:
            found = self._ask(f"/ws/v1/cluster/apps?{urlencode({'applicationTags': tag})}", applications_of)
        except _NotFound:
            raise ClusterRefused(address=self._shown, request="list of applications", problem="not found") from None
        return tuple(map(self._shown_whole, found))

    def kill(self, application_id: str) -> None:
        """Asks for the end of the application. A second call, and one for an application that has ended, is harmless.
        Only the state afterwards shows an end. Raises as `application`.
        """
        try:
            self._ask(
                f"/ws/v1/cluster/apps/{quote(application_id)}/state", lambda answer: answer, body={"state": "KILLED"}
            )
        except _NotFound:
            raise ApplicationUnknown(address=self._shown, application=application_id) from None

    def node_of(self, application: YarnApplication) -> NodeView | None:
        """The answer of the driver's node about the driver's container. None without one."""
        if not (application.node and application.container):
            return None
        try:
            info = self._get(f"{application.node}/ws/v1/node/info")
            try:
                told = self._get(f"{application.node}/ws/v1/node/containers/{application.container}")
            except _NotFound:
                return node_view(_object(info), None)
            return node_view(_object(info), _object(told))
        except (_NotFound, OSError, http.client.HTTPException, ValueError):
            return None

    def driver_log(self, application: YarnApplication) -> str:
        """The last lines that the driver printed, and of Spark's own log, if its node gives them."""
        found = []
        for log in _LOGS if application.node and application.container else ():
            address = f"{application.node}/ws/v1/node/containers/{application.container}/logs/{log}?size=-{_LOG_BYTES}"
            try:
                text = self._get(address).decode("utf-8", "replace").strip()
            except (_NotFound, OSError, http.client.HTTPException):
                continue
            if text:
                found.append("\n".join((f"[{log}]", *text.splitlines()[-_LOG_LINES:])))
        return "\n".join(found) or f"(none could be read; try: yarn logs -applicationId {application.id})"

    @property
    def _shown(self) -> str:
        return ", ".join(self.addresses)

    def _shown_whole(self, application: YarnApplication) -> YarnApplication:
        """The application. Without start and logs nothing proves an end, so ClusterRefused is raised."""
        if not application.hidden:
            return application
        user = f"the user {self.user}" if self.user else "a request without a user"
        problem = (
            f"it hides start and logs of the application from {user} (yarn.acl.enable). Let that user view "
            "applications: by spark.ui.view.acls, by the ACL of the queue, or as the user who submits"
        )
        raise ClusterRefused(address=self._shown, request=f"view of {application.id}", problem=problem)

    def _ask(self, path: str, read: Callable[[Mapping[str, Any]], T], *, body: Mapping[str, str] | None = None) -> T:
        """The answer of the first address that gives one; a manager in standby sends to the active one, if one is."""
        problems = []
        for address in self.addresses:
            try:
                return read(_object(self._get(address + path, body=body)))
            except urllib.error.HTTPError as error:
                if 400 <= error.code < 500:
                    request = path.partition("?")[0]
                    raise ClusterRefused(address=address, request=request, problem=_said_by(error)) from error
                problems.append(f"HTTP {error.code} of {address}{': no manager is active' if error.code < 400 else ''}")
            except (OSError, http.client.HTTPException, ValueError) as error:
                problems.append(f"{address}: {_told(error)}")
        raise ClusterUnreachable(address=self._shown, problem="; ".join(problems))

    def _by_the_user(self, url: str) -> str:
        if not self.user or "user.name=" in url:
            return url
        return f"{url}{'&' if '?' in url else '?'}{urlencode({'user.name': self.user})}"

    def _get(self, url: str, *, body: Mapping[str, str] | None = None, hops: int = 3) -> bytes:
        """The body of the answer. Raises _NotFound, HTTPError, OSError, HTTPException."""
        data = None if body is None else json.dumps(dict(body)).encode()
        headers = {"Accept": "application/json, text/plain, */*", "Content-Type": "application/json"}
        method = "GET" if data is None else "PUT"
        request = urllib.request.Request(self._by_the_user(url), data=data, headers=headers, method=method)
        until = time.monotonic() + self._seconds
        try:
            with urllib.request.urlopen(request, timeout=self._seconds) as answer:
                return _read(answer, until)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                raise _NotFound from error
            elsewhere = error.headers.get("Location", "")
            if data is not None and error.code in (301, 302, 307, 308) and hops and _is_web(elsewhere):
                return self._get(elsewhere, body=body, hops=hops - 1)
            raise


def _own_user() -> str:
    """As Hadoop finds it for spark-submit; empty for a process whose user has no name."""
    try:
        return os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
    except (KeyError, OSError):  # a container with a number alone
        return ""


def addresses_from(text: str) -> tuple[str, ...]:
    """The addresses in a setting, separated by commas, with or without `http://`. Raises InvalidArgument."""
    found = []
    for part in (one.strip() for one in text.split(",") if one.strip()):
        address = part if "://" in part else f"http://{part}"
        if not _is_web(address):
            problem = "it must be an http or https address without a user, such as http://rm.example:8088"
            shown = "(not shown)" if "@" in part else part
            raise InvalidArgument(argument="yarn_resourcemanager_webapp_address", value=shown, problem=problem)
        found.append(address.rstrip("/"))
    return tuple(found)


def _is_web(address: str) -> bool:
    parts = urlsplit(address)
    return parts.scheme in ("http", "https") and bool(parts.netloc) and "@" not in parts.netloc


def _read(answer: http.client.HTTPResponse, until: float) -> bytes:
    parts, size = [], 0
    while part := answer.read1(1 << 16):
        size += len(part)
        if size > _MOST_BYTES:
            raise http.client.HTTPException(f"its answer has more than {_MOST_BYTES:,} bytes")
        if time.monotonic() > until:
            raise TimeoutError("its answer does not end")
        parts.append(part)
    return b"".join(parts)


def _object(body: bytes) -> Mapping[str, Any]:
    told = parsed(body)
    if not isinstance(told, Mapping):
        raise ValueError("its answer is not a JSON object")
    return told


def _said_by(error: urllib.error.HTTPError) -> str:
    text = error.read(2000).decode("utf-8", "replace")
    try:
        told = _object(text.encode()).get("RemoteException", {})
        text = str(told.get("message", text)) if isinstance(told, Mapping) else text
    except ValueError:
        text = text if not text.lstrip().startswith("<") else ""
    return f"HTTP {error.code} {error.reason}. {text.strip()[:300]}".strip()


def _told(error: Exception) -> str:
    reason = getattr(error, "reason", None)
    if isinstance(error, TimeoutError) or isinstance(reason, TimeoutError):
        return "it accepts connections and does not answer" if not reason else "no connection in time"
    return str(reason or error) or type(error).__name__
