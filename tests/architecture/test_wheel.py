"""The wheel is complete: installed into an empty place, Airflow finds the provider in it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import warnings
import zipfile
from email.message import Message
from email.parser import Parser
from importlib.metadata import version as installed
from pathlib import Path

import pyspark
import pytest
from packaging.requirements import Requirement

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
    every = (package / "tidemark/plugins/monitor/page").rglob("*")
    page = {str(file.relative_to(package)) for file in every if file.is_file()}
    assert page
    assert modules | page <= held
    assert all(name.endswith(".dist-info") for name in others)


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_the_wheel_has_its_license_and_says_that_it_is_typed(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (license_file,) = (name for name in archive.namelist() if name.endswith(".dist-info/licenses/LICENSE"))
        assert archive.read(license_file) == (REPOSITORY / "LICENSE").read_bytes()
        assert "tidemark/py.typed" in archive.namelist()
        vendored = [name for name in archive.namelist() if "/page/vendor/" in name and name.endswith(".mjs")]
        licensed = {name for name in archive.namelist() if ".dist-info/licenses/" in name}
        assert vendored
        for module in vendored:
            assert [name for name in licensed if name.endswith(f"{module.removesuffix('.mjs')}.LICENSE")], module
    assert "Apache License" in (REPOSITORY / "LICENSE").read_text()
    assert metadata(wheel)["License-Expression"] == "Apache-2.0 AND ISC AND MIT"


def test_every_link_of_the_description_is_absolute(wheel: Path) -> None:
    description = str(metadata(wheel).get_payload())
    links = re.findall(r"\]\(([^)\s]+)\)", description)
    assert len(links) == len(re.findall(r"\]\(", (REPOSITORY / "README.md").read_text()))
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    ours = [link for link in links if "github.com/tidemark-cdc/tidemark/blob/main/" in link]
    ours += [link for link in links if "raw.githubusercontent.com/tidemark-cdc/tidemark/main/" in link]
    paths = [link.partition("/main/")[2].partition("#")[0] for link in ours]
    assert paths
    assert [path for path in paths if not (REPOSITORY / path).exists()] == []


def test_no_extra_is_for_those_who_develop(wheel: Path) -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    assert set(metadata(wheel).get_all("Provides-Extra", [])) == set(project["project"]["optional-dependencies"])
    assert not {"dev", "docs", "test"} & set(project["project"]["optional-dependencies"])
    assert "pytest" not in " ".join(metadata(wheel).get_all("Requires-Dist", []))


def test_with_spark_comes_no_pandas_that_pyspark_warns_of(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pandas
    from pyspark.sql.pandas.utils import require_minimum_pandas_version

    required = [Requirement(text) for text in metadata(wheel).get_all("Requires-Dist", [])]
    (bound,) = [
        one for one in required if one.name == "pandas" and one.marker and one.marker.evaluate({"extra": "spark"})
    ]
    warned = set()
    for version in ("2.2.0", "2.3.3", "3.0.0", "3.1.1", "4.0.0"):
        monkeypatch.setattr(pandas, "__version__", version)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            require_minimum_pandas_version()
        warned |= {version} if told else set()
    assert warned, "PySpark warns of none any more: the bound may go"
    assert [version for version in warned if version in bound.specifier] == []


def test_with_spark_come_pyspark_and_its_client_in_one_version(wheel: Path) -> None:
    """Airflow's Spark provider brings the client, which would overwrite files of PySpark with those of another one."""
    required = [Requirement(text) for text in metadata(wheel).get_all("Requires-Dist", [])]
    of_spark = [one for one in required if one.marker and one.marker.evaluate({"extra": "spark"})]
    pinned = {one.name: str(one.specifier) for one in of_spark if one.name.startswith("pyspark")}
    here = f"=={installed('pyspark')}"
    assert pinned == {"pyspark": here, "pyspark-client": here}
    assert installed("pyspark-client") == installed("pyspark") == pyspark.__version__


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
