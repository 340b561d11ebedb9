"""The Java of a submission, found without starting one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tidemark.errors import JavaNotFound

__all__ = ["require_java"]

_OLDEST = 17


def require_java(environment: Mapping[str, str]) -> int:
    """The major version of the Java that Spark's launcher uses. Raises JavaNotFound if it is missing or before 17."""
    home = environment.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java", path=environment.get("PATH"))
    if java is None or not os.access(java, os.X_OK):
        raise JavaNotFound(
            found=f"no java under JAVA_HOME={home}" if home else "no java on the PATH", command=_command()
        )
    text = _release(Path(java)) or _version_output(java, environment)
    found = re.search(r'"(?:1\.)?(\d+)', text)
    if found is None or int(found.group(1)) < _OLDEST:
        raise JavaNotFound(found=" ".join(text.split())[:80] or java, command=_command())
    return int(found.group(1))


def _release(java: Path) -> str:
    """The version of a Java installation, from its file `release` beside `bin`."""
    file = java.resolve().parent.parent / "release"
    lines = file.read_text(errors="replace").splitlines() if file.is_file() else []
    return next((line for line in lines if line.startswith("JAVA_VERSION=")), "")


def _version_output(java: str, environment: Mapping[str, str]) -> str:
    try:
        answer = subprocess.run(
            [java, "-version"], env=environment, capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return answer.stderr + answer.stdout


def _command() -> str:
    return "brew install openjdk@17" if sys.platform == "darwin" else "sudo apt-get install openjdk-17-jre-headless"
