"""A real Airflow API server under a sub-path, with users of some roles, and a headless Chromium to look at it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.ports import free_port

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

__all__ = ["USERS", "ApiServer", "api_server", "chromium"]

USERS = {"admin": "admin", "viewer": "viewer", "guest": ""}  # name → role; a guest has no rights
WITHOUT_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class ApiServer:
    """`url` ends without a slash; a user's password is the name, then `-password`."""

    url: str
    process: subprocess.Popen[bytes]

    @property
    def answers(self) -> bool:
        try:
            return bool(WITHOUT_PROXY.open(f"{self.url}/api/v2/version", timeout=5).status == 200)
        except (urllib.error.URLError, OSError):
            return False


@contextmanager
def api_server(root: Path, environment: Mapping[str, str]) -> Iterator[ApiServer]:
    """Runs while the context does, on Airflow's home of this process. Its log is in `root`."""
    passwords = root / "passwords.json"
    passwords.write_text(json.dumps({name: f"{name}-password" for name in USERS}))
    port = free_port()
    url = f"http://localhost:{port}/air"
    variables = {
        **os.environ,
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{name}:{role}" for name, role in USERS.items()),
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(passwords),
        **environment,
    }
    command = [sys.executable, "-m", "airflow", "api-server", "--apps", "core", "--workers", "1"]
    with open(root / "server.log", "wb") as log:
        server = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            env=variables, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    try:
        yield _ready(ApiServer(url, server), root / "server.log")
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


@contextmanager
def chromium() -> Iterator[Chrome]:
    """Debian's Chromium with its driver; nothing is downloaded. Skips where they are not installed."""
    browser = next((found for name in ("chromium", "google-chrome") if (found := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip("needs Chromium and chromedriver: sudo apt-get install chromium chromium-driver")
    from selenium import webdriver

    os.environ.update(SE_OFFLINE="true", SE_AVOID_STATS="true", NO_PROXY="localhost,127.0.0.1")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--no-proxy-server", "--lang=en-US"):
        options.add_argument(argument)
    options.add_argument("--window-size=1440,960")
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield chrome
    finally:
        chrome.quit()


def _ready(server: ApiServer, log: Path) -> ApiServer:
    until = time.monotonic() + 180
    while time.monotonic() < until and server.process.poll() is None:
        if server.answers:
            return server
        time.sleep(0.5)
    raise AssertionError(f"the API server did not start:\n{log.read_text()[-3000:]}")
