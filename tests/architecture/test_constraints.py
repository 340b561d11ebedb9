"""The constraints of image and CI: one version of each package, each file with its hash, as pyproject.toml allows."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PLACE = ROOT / ".ci" / "constraints"
FILE: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT: dict[str, Any] = FILE["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
DECIDING = ("sqlglot", "pyroaring", "pyarrow", "sqlalchemy", "fsspec", "s3fs", "alembic", "pyspark", "delta-spark")
FILES = {"dev": tuple(EXTRAS), "image": ("spark", "s3", "demo", "postgres"), "build": ()}
PLATFORMS = [
    {"python_version": short, "python_full_version": full, "sys_platform": system, "platform_system": name,
     "os_name": "posix", "implementation_name": "cpython", "platform_python_implementation": "CPython"}
    for short, full in (("3.11", "3.11.9"), ("3.12", "3.12.4"), ("3.13", "3.13.2"))
    for system, name in (("linux", "Linux"), ("darwin", "Darwin"))
]  # fmt: skip


def entries(file: str) -> list[tuple[Requirement, list[str]]]:
    """Each requirement with its options."""
    lines = (PLACE / f"{file}.txt").read_text().replace("\\\n", " ").splitlines()
    split = (line.partition(" --") for line in lines if line and not line.startswith("#"))
    return [(Requirement(name), f"{dashes}{options}".split()) for name, dashes, options in split]


def pins(file: str, platform: dict[str, str]) -> dict[str, str]:
    """Package → its version there."""
    found: dict[str, str] = {}
    for requirement, _ in entries(file):
        if requirement.marker is None or requirement.marker.evaluate(platform):
            (exact,) = requirement.specifier
            assert (exact.operator, canonicalize_name(requirement.name) in found) == ("==", False), requirement
            found[canonicalize_name(requirement.name)] = exact.version
    return found


def group(name: str) -> list[str]:
    """The requirements of a dependency group, those of the groups that it includes among them."""
    texts: list[str] = []
    for entry in FILE["dependency-groups"][name]:
        texts += [entry] if isinstance(entry, str) else group(entry["include-group"])
    return texts


def wanted(file: str, platform: dict[str, str]) -> list[Requirement]:
    asked = [*PROJECT["dependencies"]] if FILES[file] else []
    asked += [text for extra in FILES[file] for text in EXTRAS[extra]]
    asked += group("dev") if file == "dev" else []
    if (more := PLACE / f"{file}.in").exists():
        asked += [line for line in more.read_text().splitlines() if line and not line.startswith("#")]
    found = [Requirement(text) for text in asked]
    return [one for one in found if one.marker is None or one.marker.evaluate(platform)]


@pytest.mark.parametrize("file", FILES)
def test_the_constraints_satisfy_the_project_on_every_platform_that_they_are_for(file: str) -> None:
    for platform in PLATFORMS:
        pinned = pins(file, platform)
        unmet = [
            str(one)
            for one in wanted(file, platform)
            if not one.specifier.contains(pinned.get(canonicalize_name(one.name), "0"), prereleases=True)
        ]
        assert unmet == [], f"`make constraints` makes them anew ({platform['python_version']})"


@pytest.mark.parametrize("file", FILES)
def test_every_package_has_hashes_and_no_line_names_an_address(file: str) -> None:
    assert entries(file)
    for requirement, options in entries(file):
        assert options, requirement
        assert [one for one in options if not re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", one)] == [], requirement
        assert requirement.url is None
    assert "://" not in (PLACE / f"{file}.txt").read_text()


def test_the_image_has_the_versions_that_the_tests_run_with() -> None:
    for platform in PLATFORMS:
        tested = pins("dev", platform)
        other = {name: v for name, v in pins("image", platform).items() if tested.get(name, v) != v}
        assert other == {}
        assert pins("build", platform)["hatchling"] == tested["hatchling"]


def test_the_image_is_built_from_nothing_without_a_hash() -> None:
    compose = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())
    recipe: str = compose["x-image"]["build"]["dockerfile_inline"]
    release = re.search(r"^FROM apache/airflow:([\d.]+)-python3\.11$", recipe, re.M)
    assert release is not None
    assert release[1] == pins("image", PLATFORMS[0])["apache-airflow"]
    installs = re.findall(r"pip install.*?(?=&&|\n[A-Z]|\Z)", recipe, re.S)
    assert len(installs) == 3
    for one in installs:
        assert "--require-hashes -r" in one or "--no-build-isolation --no-deps" in one


def test_ci_installs_with_hashes_where_the_constraints_are_for_the_platform() -> None:
    setup = (ROOT / ".ci" / "setup").read_text()
    exact, _, otherwise = setup.partition("if platform=$(.ci/constrained)")[2].partition("\nelse\n")
    installs = [line for line in exact.splitlines() if line.strip().startswith(("pip", "install"))]
    assert len(installs) == 3
    assert all("--require-hashes" in line or "--no-build-isolation --no-deps" in line for line in installs)
    assert "without a check of their hashes" in otherwise.partition("\nfi\n")[0]


@pytest.mark.parametrize("name", DECIDING)
def test_libraries_whose_behaviour_decides_are_bounded_above(name: str) -> None:
    texts = [*PROJECT["dependencies"], *(text for extra in EXTRAS.values() for text in extra)]
    (bound,) = [one.specifier for one in map(Requirement, texts) if one.name == name]
    assert any(part.operator in ("<", "==") for part in bound)
