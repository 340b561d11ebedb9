"""What lies at the top of the repository, and what is checked before a commit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
TOP = {
    "pyproject.toml", "provider", "dags", "tests", "docker-compose.yaml", "Makefile",
    "README.md", "LICENSE", "SECURITY.md", "CONTRIBUTING.md",
}  # fmt: skip


def test_the_top_holds_little() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    top = {line.split("/")[0] for line in listed.splitlines()}
    assert {name for name in top if not name.startswith(".")} == TOP


def test_hooks_are_local_and_run_the_projects_own_tools() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [group["repo"] for group in hooks] == ["local"]
    commands = [hook["entry"].split()[0] for group in hooks for hook in group["hooks"]]
    linted = (ROOT / "Makefile").read_text().partition("\nlint:")[2].partition("\n\n")[0]
    for tool in ("ruff", "mypy", "lint-imports"):
        assert f".venv/bin/{tool}" in commands
        assert f"$(BIN)/{tool}" in linted
    assert any(hook["entry"] == ".venv/bin/python .ci/dead-code" for group in hooks for hook in group["hooks"])
    assert "$(BIN)/python .ci/dead-code" in linted
    assert all((ROOT / command).exists() for command in commands if command.startswith(".ci/"))


@pytest.mark.parametrize(
    ("subject", "accepted"),
    [
        ("replication: retry apply after an interrupted backfill", True),
        ("change streams: plan waves in one transaction", True),
        ("Merge branch 'main'", True),
        ("Replication retries apply", False),
        ("replication: Retry apply", False),
        ("replication: retry apply.", False),
        (f"replication: {'retry ' * 12}", False),
    ],
)
def test_the_subject_of_a_commit_has_its_form(subject: str, accepted: bool, tmp_path: Path) -> None:
    message = tmp_path / "message"
    message.write_text(f"{subject}\n\nA body of any length, which says why.\n")
    done = subprocess.run([ROOT / ".ci" / "commit-subject", message], capture_output=True, text=True, check=False)
    assert (done.returncode == 0) is accepted, done.stderr
