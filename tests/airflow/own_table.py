"""The blocks of the tutorial "Your own table in ten minutes", in their order, for those who follow it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Block", "blocks_of_the_page"]

PAGE = Path(__file__).parents[2] / "provider" / "docs" / "tutorials" / "your-own-table.md"
_BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```$(?:\s+^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """What a reader types, and the lines that the page shows behind it."""

    language: str
    code: str
    shown: str

    @property
    def is_dag_file(self) -> bool:
        return self.language == "python" and "with DAG(" in self.code

    @property
    def names_the_lake_root(self) -> bool:
        """One of the ways by the environment; a reader chooses one way of all."""
        return self.code.startswith("export ")

    @property
    def runs_the_dag(self) -> bool:
        return self.code.strip() == "airflow dags test orders_mirror"

    def missing(self, said: str) -> list[str]:
        """Lines that the page shows and that were not said."""
        return [line for line in self.shown.splitlines() if line not in said]


def blocks_of_the_page(lake_root: Path) -> list[Block]:
    """With `lake_root` in place of the page's."""
    text = PAGE.read_text(encoding="utf-8").replace("/data/lake", str(lake_root))
    found = [Block(*parts) for parts in _BLOCK.findall(text)]
    assert text.count("\n```text\n") == sum(bool(block.shown) for block in found), "a text without its command"
    return found
