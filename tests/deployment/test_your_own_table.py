"""A reader follows the tutorial word by word: the wheel in a new virtual environment, and an Airflow of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.airflow.own_table import Block, blocks_of_the_page
from tests.tiers import nightly

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(3000)]

REPOSITORY = Path(__file__).parents[2]
PROMPT = """
import contextlib, io, json, sys
names = {}
for line in sys.stdin:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(json.loads(line), names)
    print(json.dumps(said.getvalue()), flush=True)
"""


@dataclass
class Reader:
    """Somebody with an Airflow, who follows blocks. `prompt`: the Python that they leave open."""

    home: Path
    environment: dict[str, str]
    prompt: subprocess.Popen[str]

    def follow(self, block: Block) -> str:
        """What it says. A block that fails raises AssertionError with all of it."""
        if block.is_dag_file:
            dags = self.home / "airflow" / "dags"
            dags.mkdir(exist_ok=True)
            (dags / "orders_mirror.py").write_text(block.code, encoding="utf-8")
            return ""
        return self._type(block.code) if block.language == "python" else run(block.code, self.environment)

    def _type(self, code: str) -> str:
        assert self.prompt.stdin is not None
        assert self.prompt.stdout is not None
        self.prompt.stdin.write(f"{json.dumps(code)}\n")
        self.prompt.stdin.flush()
        for line in self.prompt.stdout:
            if line.startswith('"'):
                return str(json.loads(line))
        raise AssertionError(f"Python ended with {self.prompt.wait()} at\n{code}")


def run(command: str, environment: dict[str, str]) -> str:
    """What a shell says to it, errors included."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-6000:]}"
    return done.stdout


def constraints_without_hashes() -> str:
    text = (REPOSITORY / ".ci" / "constraints" / "image.txt").read_text(encoding="utf-8")
    pinned = re.compile(r"^([\w.-]+)(?:\[.*?\])?(==[^\\\n]+)", re.MULTILINE)
    return "".join(f"{name}{version}\n" for name, version in pinned.findall(text))


@contextmanager
def reader_with_an_airflow(home: Path) -> Iterator[Reader]:
    """A virtual environment with Airflow alone, its database, and the project's wheel where pip finds it."""
    ours = ("AIRFLOW", "TIDEMARK_", "PYTHON", "SPARK_", "PYSPARK_", "VIRTUAL_ENV")
    (home / "constraints.txt").write_text(constraints_without_hashes(), encoding="utf-8")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(ours)},
        "PATH": f"{home}/environment/bin{os.pathsep}{os.environ['PATH']}",
        "AIRFLOW_HOME": str(home / "airflow"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "PIP_CONSTRAINT": str(home / "constraints.txt"),
        "PIP_FIND_LINKS": f"{home}/wheels {os.environ.get('PIP_FIND_LINKS', '')}".strip(),
        "PYTHONWARNINGS": "ignore",
    }
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(home / "wheels")]
    subprocess.run([*build, str(REPOSITORY)], check=True, capture_output=True, timeout=300)
    subprocess.run([sys.executable, "-m", "venv", str(home / "environment")], check=True, timeout=300)
    run("pip install -q apache-airflow && airflow db migrate", environment)
    with subprocess.Popen(
        [str(home / "environment" / "bin" / "python"), "-c", PROMPT],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as prompt:
        yield Reader(home, environment, prompt)


@nightly("installs the wheel and all that it needs, which takes minutes and an index; `make test` runs the page's DAG")
def test_the_page_is_followed_word_by_word_in_an_airflow_of_its_own(tmp_path: Path) -> None:
    lake_root = tmp_path / "lake"
    with reader_with_an_airflow(tmp_path) as reader:
        for block in blocks_of_the_page(lake_root):
            if not block.names_the_lake_root:  # this reader has chosen the connection in Airflow
                assert block.missing(reader.follow(block)) == [], block.code
    assert (lake_root / "shop" / "orders_mirror" / "_delta_log").is_dir()
