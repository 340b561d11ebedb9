"""Applications of YARN, as its REST interface tells them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

__all__ = [
    "NodeView",
    "YarnApplication",
    "application_of",
    "applications_of",
    "driver_tag",
    "node_view",
    "started_on",
    "surely_ended",
    "web_addresses",
]

_FINAL = frozenset({"FINISHED", "FAILED", "KILLED"})
_DONE = frozenset({"DONE", "EXITED_WITH_SUCCESS", "EXITED_WITH_FAILURE", "COMPLETE"})
_ACTIVE = "ACTIVE"
_CONTAINER = re.compile(r"container_[A-Za-z0-9_]+")
_WEB_PORTS = {"http": 8088, "https": 8090}


@dataclass(frozen=True)
class YarnApplication:
    """An application. `state` and `final_status` are YARN's words. `driver_logs`: the address of the logs of its
    application master, which is the driver; empty before it has one. `started_at`: milliseconds of the epoch, and 0 if
    YARN hides it.
    """

    id: str
    state: str
    final_status: str = "UNDEFINED"
    tracking_url: str = ""
    diagnostics: str = ""
    driver_logs: str = ""
    started_at: int = 0

    @property
    def final(self) -> bool:
        """Whether YARN does nothing more for it. Its processes may still run: see `surely_ended`."""
        return self.state in _FINAL

    @property
    def hidden(self) -> bool:
        """Whether its ACL hides start and logs from the user who asks. It has a start from its submission on."""
        return self.started_at == 0

    @property
    def succeeded(self) -> bool:
        """Whether the driver said good-bye after a success."""
        return self.state == "FINISHED" and self.final_status == "SUCCEEDED"

    @property
    def container(self) -> str:
        """The container of the driver; empty before it has one."""
        found = _CONTAINER.search(self.driver_logs)
        return found[0] if found else ""

    @property
    def node(self) -> str:
        """The web address of the driver's node; empty before it has one."""
        parts = urlsplit(self.driver_logs)
        return f"{parts.scheme}://{parts.netloc}" if parts.scheme in ("http", "https") and parts.netloc else ""


@dataclass(frozen=True)
class NodeView:
    """The answer of a node manager. `started_at`: of its own process. `container`: the state of the container that was
    asked for, None if the node does not know it.
    """

    started_at: int
    container: str | None


def surely_ended(application: YarnApplication, node: NodeView | None) -> bool:
    """Whether the driver can write no more. `node`: the answer of its node, None without one.

    A state that is not final means no, also after a kill. A driver that said good-bye after a success has ended. For
    others the state is the resource manager's opinion: a node that it lost may still run them. Then the node manager
    has to know nothing of the container, and must be as old as the application. A hidden one names no node.
    """
    if not application.final:
        return False
    if application.succeeded:
        return True
    if not application.driver_logs:
        return not application.hidden
    if node is None or node.started_at > application.started_at:
        return False
    return node.container is None or node.container in _DONE


def driver_tag(job_id: str) -> str:
    """The tag by which the application of a job is found. YARN keeps tags in lower case."""
    return f"tidemark-{job_id}".lower()


def application_of(answer: Mapping[str, Any]) -> YarnApplication:
    """The application in an answer. Raises ValueError if it has none."""
    told = answer.get("app")
    if not isinstance(told, Mapping):
        raise ValueError("it names no application")
    return _application(told)


def applications_of(answer: Mapping[str, Any]) -> tuple[YarnApplication, ...]:
    """The applications in an answer, the newest first; YARN writes null for none. Raises ValueError for other forms."""
    told = answer.get("apps", ...)
    if told is None or told == {}:
        return ()
    listed = told.get("app") if isinstance(told, Mapping) else None
    if not isinstance(listed, list):
        raise ValueError("it has no list of applications")
    return tuple(sorted(map(_application, listed), key=lambda one: (-one.started_at, one.id)))


def started_on(answer: Mapping[str, Any]) -> int:
    """The start of the active resource manager in milliseconds of the epoch, in its information. Raises ValueError.

    The answer of a manager in standby is about itself, so that is a ValueError, too.
    """
    told = answer.get("clusterInfo")
    found = told if isinstance(told, Mapping) else {}
    state, started = found.get("haState", _ACTIVE), found.get("startedOn")
    if state != _ACTIVE:
        raise ValueError(f"it is not active, but {state}")
    if not isinstance(started, int):
        raise ValueError("it has no startedOn")
    return started


def node_view(info: Mapping[str, Any], container: Mapping[str, Any] | None) -> NodeView:
    """The view in two answers of a node manager. Raises ValueError."""
    started = info.get("nodeInfo", {}).get("nmStartupTime") if isinstance(info.get("nodeInfo"), Mapping) else None
    if not isinstance(started, int):
        raise ValueError("it has no nmStartupTime")
    if container is None:
        return NodeView(started, None)
    told = container.get("container")
    state = told.get("state") if isinstance(told, Mapping) else None
    if not isinstance(state, str):
        raise ValueError("it has no state of the container")
    return NodeView(started, state)


def web_addresses(site: Mapping[str, str]) -> tuple[str, ...]:
    """The web addresses of the resource managers in the properties of a yarn-site.xml; several if one may fail over."""
    scheme = "https" if site.get("yarn.http.policy", "").upper() == "HTTPS_ONLY" else "http"
    setting = "yarn.resourcemanager.webapp.address" if scheme == "http" else "yarn.resourcemanager.webapp.https.address"
    ids = [one.strip() for one in site.get("yarn.resourcemanager.ha.rm-ids", "").split(",") if one.strip()]
    several = site.get("yarn.resourcemanager.ha.enabled", "").lower() == "true"
    suffixes = [f".{one}" for one in ids] if several and ids else [""]
    found = []
    for suffix in suffixes:
        host = site.get(f"yarn.resourcemanager.hostname{suffix}", "").strip()
        address = site.get(f"{setting}{suffix}", "").strip() or (host and f"{host}:{_WEB_PORTS[scheme]}")
        if host:
            address = address.replace("${yarn.resourcemanager.hostname}", host)
        if address and "${" not in address:
            found.append(f"{scheme}://{address}")
    return tuple(found)


def _application(told: Any) -> YarnApplication:
    if not (isinstance(told, Mapping) and isinstance(told.get("id"), str) and isinstance(told.get("state"), str)):
        raise ValueError("an application has no id or no state")
    started = told.get("startedTime")
    return YarnApplication(
        told["id"],
        told["state"],
        _text(told, "finalStatus") or "UNDEFINED",
        _text(told, "trackingUrl"),
        _text(told, "diagnostics"),
        _text(told, "amContainerLogs"),
        started if isinstance(started, int) else 0,
    )


def _text(told: Mapping[str, Any], name: str) -> str:
    value = told.get(name)
    return value.strip() if isinstance(value, str) else ""
