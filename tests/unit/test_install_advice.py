"""Checks of a host name the packages that its release of Debian or Ubuntu has, and `.ci/run` installs them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = ("bash", "dirname", "env", "head", "sed")
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
KNOWN = (
    """case " $(cat "$0.known") " in *" $2 "*) echo "Package: $2" ;; esac"""  # no output for a name that others mention
)
WITHOUT_VENV = f"""exec {sys.executable} -c 'import sys; sys.modules["ensurepip"] = None; exec(sys.argv[1])' "$2" """


@dataclass(frozen=True)
class Host:
    """The programs of a host in one directory."""

    programs: Path

    def has(self, name: str, script: str) -> None:
        program = self.programs / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def knows(self, *packages: str) -> None:
        (self.programs / "apt-cache.known").write_text(" ".join(packages))

    def advice(self, check: str) -> str:
        """The command that a check names."""
        said = self.ran(check)
        assert said.returncode == 1
        return said.stderr.splitlines()[-1].strip()

    def ran(self, script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [ROOT / ".ci" / script], env={"PATH": str(self.programs)}, capture_output=True, text=True, check=False
        )


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A Linux with neither Python nor Java, whose lists of packages are empty."""
    for program in PROGRAMS:
        (tmp_path / program).symlink_to(str(shutil.which(program)))
    made = Host(tmp_path)
    made.has("uname", "echo Linux")
    made.has("cat", f'exec {shutil.which("cat")} "$@"')
    made.has("apt-cache", KNOWN)
    made.knows()
    return made


@pytest.mark.parametrize(
    ("known", "python"),
    [
        (("python3.12-venv", "openjdk-17-jre-headless"), "3.12"),
        (("python3.13-venv", "openjdk-21-jre-headless"), "3.13"),
        (("python3.11-venv", "python3.12-venv"), "3.11"),
        ((), "3.11"),
    ],
)
def test_the_first_python_of_the_release_is_named(host: Host, known: tuple[str, ...], python: str) -> None:
    host.knows(*known)
    assert host.advice("check-python") == f"sudo apt-get install python{python} python{python}-venv"


def test_a_python_without_venv_lacks_one_package(host: Host) -> None:
    host.knows("python3.11-venv", "python3.12-venv", "python3.13-venv")
    host.has("python3", WITHOUT_VENV)
    assert host.advice("check-python") == f"sudo apt-get install python{HERE}-venv"


@pytest.mark.parametrize(
    ("known", "java"),
    [
        (("openjdk-17-jre-headless", "openjdk-21-jre-headless"), "17"),
        (("openjdk-21-jre-headless",), "21"),
        ((), "17"),
    ],
)
def test_the_first_java_of_the_release_is_named(host: Host, known: tuple[str, ...], java: str) -> None:
    host.knows(*known)
    assert host.advice("check-java") == f"sudo apt-get install openjdk-{java}-jre-headless"


def test_a_bare_system_gets_the_packages_of_its_release(host: Host) -> None:
    """It knows no package before the lists are fetched."""
    fetched = f'echo python3.13-venv openjdk-21-jre-headless > "{host.programs}/apt-cache.known"'
    host.has("apt-get", f'echo "$*" >> "{host.programs}/asked"; case "$1" in update) {fetched} ;; esac')
    host.has("id", "echo 0")
    for program in ("make", "ps", "initdb", "mariadbd", "chromedriver"):
        host.has(program, f'echo "{program} $*" >> "{host.programs}/asked"')
    assert host.ran("run").returncode == 0
    asked = (host.programs / "asked").read_text().splitlines()
    (installed,) = (line for line in asked if line.startswith("install "))
    assert installed.split()[-3:] == ["openjdk-21-jre-headless", "python3.13", "python3.13-venv"]
    assert asked[-1] == "make --no-print-directory test"
