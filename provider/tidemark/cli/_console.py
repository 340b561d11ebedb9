"""Airflow's console, whose plain text and YAML leave each text unchanged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

import yaml  # type: ignore[import-untyped]
from airflow.cli.simple_table import AirflowConsole
from rich.cells import cell_len
from rich.syntax import Syntax

__all__ = ["TextConsole"]

_GAP = "  "  # between two columns
_NUMBERS_OF_YAML_1_2 = re.compile(
    r"(?:0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)$"
)
"""PyYAML knows the numbers of YAML 1.1 alone, and leaves texts such as `1e5` without quotes."""


class TextConsole(AirflowConsole):
    """A text that could be read as a number stays that text, such as `1e5` and `007`."""

    def print_as_plain_table(self, data: list[dict[str, Any]]) -> None:
        """Columns of text. Airflow's would make `100000` of `1e5`, and drop the blanks before a text."""
        if not data:
            super().print_as_plain_table(data)
            return
        for line in _plain_lines([list(data[0]), *(list(row.values()) for row in data)]):
            print(line)

    def print_as_yaml(self, data: Any) -> None:
        """A text that YAML 1.1 or 1.2 would take for a number is in quotes."""
        self.print(Syntax(yaml.dump(data, Dumper=_Dumper), "yaml", theme="ansi_dark"), soft_wrap=True)


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Knows the numbers of both versions, so texts like them are in quotes."""


_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", _NUMBERS_OF_YAML_1_2, list("-+.0123456789"))


def _plain_lines(rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    """All cells of a column begin at the same place. A cell with several lines keeps them below each other."""
    cells = [[("" if value is None else str(value)).split("\n") for value in row] for row in rows]
    widths = [max(cell_len(line) for cell in column for line in cell) for column in zip(*cells, strict=True)]
    for row in cells:
        for line in zip_longest(*row, fillvalue=""):
            yield _padded(line, widths)


def _padded(line: Iterable[str], widths: Sequence[int]) -> str:
    *cells, last = line
    padded = (text + " " * (width - cell_len(text)) for text, width in zip(cells, widths, strict=False))
    return _GAP.join((*padded, last))
