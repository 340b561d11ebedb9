"""A server that plays YARN's REST interface: resource manager and node manager in one, on a port of this host."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

__all__ = ["CONTAINER", "NOBODY", "PlayedYarn", "played_yarn"]

CONTAINER = "container_1_0001_01_000001"
NOBODY = "nobody"
STARTED = 1_000_000


@dataclass
class PlayedYarn:
    """`apps`: id → application as YARN tells it. `containers`: id → state. `silent`: connections are taken and never
    answered. `moved_to`: the active manager, as one in standby names it; `NOBODY` while none is. `answers`: path →
    (status, body) in place of all else. `kills`: whether a kill is carried out. `viewer`: the only user who may view
    applications. Others get them without start and logs, or not at all with `filters`.
    """

    port: int = 0
    apps: dict[str, dict[str, Any]] = field(default_factory=dict)
    containers: dict[str, str] = field(default_factory=dict)
    node_started: int = STARTED - 1
    manager_started: int = 0
    silent: bool = False
    moved_to: str = ""
    kills: bool = True
    viewer: str = ""
    filters: bool = False
    answers: dict[str, tuple[int, str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def run(self, number: int, *, tags: str = "", state: str = "RUNNING", **more: Any) -> str:
        """An application that the cluster has."""
        name = f"application_1_{number:04}"
        container = CONTAINER.replace("0001_01", f"{number:04}_01")
        self.apps[name] = {
            "id": name,
            "state": state,
            "finalStatus": "UNDEFINED",
            "trackingUrl": "",
            "diagnostics": "",
            "applicationTags": tags,
            "startedTime": STARTED + number,
            "amContainerLogs": f"{self.address}/node/containerlogs/{container}/me",
            **more,
        }
        self.containers[container] = "RUNNING"
        return name

    def end(self, name: str, state: str = "FINISHED", final_status: str = "SUCCEEDED", diagnostics: str = "") -> None:
        """The application ends, and its node removes the container."""
        self.apps[name] |= {"state": state, "finalStatus": final_status, "diagnostics": diagnostics}
        self.containers.pop(self.apps[name]["amContainerLogs"].split("/")[-2], None)

    def reply(self, method: str, target: str, body: bytes) -> tuple[int, str]:
        parts = urlsplit(target)
        path = parts.path
        if path == "/played":  # what a stand-in for spark-submit asks for
            return 200, self.run(len(self.apps) + 1, tags=parse_qs(parts.query)["tags"][0])
        if path in self.answers:
            return self.answers[path]
        if self.viewer and parse_qs(parts.query).get("user.name", ["dr.who"]) != [self.viewer]:
            apps = {} if self.filters else {name: _hidden(app) for name, app in self.apps.items()}
            return replace(self, viewer="", apps=apps).reply(method, target, body)
        if path == "/ws/v1/cluster/apps":
            (tag,) = parse_qs(parts.query).get("applicationTags", [""])
            found = [app for app in self.apps.values() if tag in app["applicationTags"].split(",")]
            return 200, json.dumps({"apps": {"app": found} if found else None})
        if path.startswith("/ws/v1/cluster/apps/"):
            return self._application(method, path.split("/")[5], body)
        if path == "/ws/v1/cluster/info":
            state = "STANDBY" if self.moved_to else "ACTIVE"
            return 200, json.dumps({"clusterInfo": {"startedOn": self.manager_started, "haState": state}})
        return self._node(path)

    def _node(self, path: str) -> tuple[int, str]:
        if path == "/ws/v1/node/info":
            return 200, json.dumps({"nodeInfo": {"nmStartupTime": self.node_started}})
        if "/logs/" in path:
            return 200, f"the end of {path.rsplit('/', 1)[-1]}"
        state = self.containers.get(path.rsplit("/", 1)[-1])
        return (404, "{}") if state is None else (200, json.dumps({"container": {"state": state}}))

    def _application(self, method: str, name: str, body: bytes) -> tuple[int, str]:
        if name not in self.apps:
            return 404, json.dumps({"RemoteException": {"message": f"app with id: {name} not found"}})
        if method == "PUT":
            assert json.loads(body) == {"state": "KILLED"}
            if self.kills and self.apps[name]["state"] in ("ACCEPTED", "RUNNING"):
                self.end(name, "KILLED", "KILLED", "killed by a user")
            return 202, json.dumps({"state": self.apps[name]["state"]})
        return 200, json.dumps({"app": self.apps[name]})


def _hidden(app: dict[str, Any]) -> dict[str, Any]:
    """As YARN tells an application to a user without the right to view it."""
    return {**{name: value for name, value in app.items() if name != "amContainerLogs"}, "startedTime": 0}


@contextmanager
def played_yarn() -> Iterator[PlayedYarn]:
    """The server, which ends with the block."""
    yarn = PlayedYarn()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            yarn.asked.append(f"{self.command} {self.path}")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if yarn.silent:
                yarn.released.wait(60)
                return
            if (
                yarn.moved_to and urlsplit(self.path).path != "/ws/v1/cluster/info"
            ):  # which YARN answers in standby, too
                self.send_response(307)
                if yarn.moved_to == NOBODY:
                    self.send_header("Refresh", f"3;url={yarn.address}{self.path}")
                else:
                    self.send_header("Location", f"{yarn.moved_to}{self.path}")
                self.end_headers()
                return
            status, text = yarn.reply(self.command, self.path, body)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        do_PUT = do_GET

        def log_message(self, *_: object) -> None:
            """Nothing: pytest's output is for failures."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    yarn.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield yarn
    finally:
        yarn.released.set()
        server.shutdown()
        server.server_close()
