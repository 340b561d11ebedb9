"""The wheel is complete: installed into an empty place, Airflow finds the provider in it."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the source tree, without a network."""
    made = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(made), str(REPOSITORY)]
    subprocess.run(build, check=True, capture_output=True, timeout=120)
    (found,) = made.glob("*.whl")
    return found


def test_the_wheel_holds_every_module_and_nothing_of_the_tests(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if name.startswith("tidemark/")}
        others = {name.split("/")[0] for name in archive.namelist()} - {"tidemark"}
    package = REPOSITORY / "provider"
    modules = {str(file.relative_to(package)) for file in (package / "tidemark").rglob("*.py")}
    page = {str(file.relative_to(package)) for file in (package / "tidemark/plugins/monitor/page").iterdir()}
    assert page
    assert modules | page <= held
    assert all(name.endswith(".dist-info") for name in others)


@pytest.mark.airflow
def test_an_installed_wheel_is_listed_by_airflow(wheel: Path, tmp_path: Path) -> None:
    """A new environment holds nothing but the wheel; a .pth file lends it the dependencies, last on its path."""
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True, timeout=120)
    (site,) = environment.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    lent = Path(sysconfig.get_path("purelib"))
    (site / "dependencies.pth").write_text(f"import sys; sys.path.append({str(lent)!r})\n")
    variables = {**os.environ, "AIRFLOW_HOME": str(tmp_path / "home"), "PYTHONPATH": ""}
    python = environment / "bin" / "python"
    where = [python, "-c", "import tidemark; print(tidemark.__file__)"]
    assert subprocess.run(where, capture_output=True, text=True, check=True, env=variables).stdout.startswith(str(site))
    listed = subprocess.run(
        [python, "-m", "airflow", "providers", "list"], capture_output=True, text=True, check=True, env=variables
    )
    assert "airflow-provider-tidemark" in listed.stdout
