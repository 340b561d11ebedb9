"""The results of nightly runs say what was not run."""

from __future__ import annotations

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

NIGHTLY = Path(__file__).parents[2] / ".ci" / "nightly"
PASSED = "3 passed, 2 skipped in 1.5s"
SKIPPED = "SKIPPED [2] tests/databases/mysql_server.py:33: MySQL cannot be fetched: no route to the mirror"


@pytest.fixture(scope="module")
def nightly() -> ModuleType:
    loader = SourceFileLoader("ci_nightly", str(NIGHTLY))
    spec = spec_from_loader(loader.name, loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def said(nightly: ModuleType, *lines: str) -> dict[str, object]:
    found: dict[str, object] = nightly.ran(sys.executable, "-c", f"print({chr(10).join(lines)!r})")
    return found


def test_a_run_without_its_mysql_is_not_ok_and_says_so(nightly: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    result = said(nightly, SKIPPED, PASSED)
    assert (result["ok"], result["result"]) == (False, PASSED)
    nightly.show({"1/8": result})
    assert "NOT RUN: tests of MySQL. MySQL cannot be fetched: no route to the mirror" in capsys.readouterr().out


def test_other_tests_may_be_skipped(nightly: ModuleType) -> None:
    result = said(nightly, "SKIPPED [1] tests/browser.py:3: Ubuntu has no browser", PASSED)
    assert result["ok"] is True
    assert "not_run" not in result
