"""Text that other writers may have written is parsed in one place, whose answer no text can break."""

from __future__ import annotations

import ast
from pathlib import Path

import tidemark

PACKAGE = Path(tidemark.__file__).parent
PARSERS = {"load", "loads", "JSONDecoder", "raw_decode"}
OURS = {  # who parses JSON besides, and whose text that is
    "plugins/monitor/etags.py": "the answers of our own routes",
    "model/foreign_json.py": "the one place",
    "jobs/in_cluster.py": "what the worker wrote for a driver that has no archive yet",
    "model/codec.py": "what this program wrote: jobs, the control store",
    "streams/store/streams.py": "the control store",
    "streams/store/ties.py": "the control store",
    "change_streams/store/ties.py": "the control store",
    "replication/store/ties.py": "the control store",
    "materialized/store/views.py": "the control store",
    "materialized/store/refreshes.py": "the control store",
    "replication/store/object_rows.py": "the control store",
    "replication/store/objects.py": "the control store",
    "replication/store/histories.py": "the control store",
    "control/object_list.py": "the control store",
    "control/object_acts.py": "the control store",
    "control/samples.py": "the control store",
    "control/migrations/versions/v0011_words_of_replications.py": "the control store",
    "control/migrations/versions/v0013_objects.py": "the control store",
    "jobs/__main__.py": "the environment, by the worker",
    "jobs/remote_session.py": "the environment, by the worker",
    "operators/_replication.py": "an argument",
    "jobs/raised_facts.py": "what a query of ours raised",
    "changes/driver/views/catalog.py": "Spark's answer about its catalog",
    "channels/driver/json_rows.py": "rows of a writer, with decimals",
    "channels/planning/values/variants.py": "a value of a writer, with decimals",
}


def test_json_of_logs_is_parsed_in_one_place() -> None:
    found = {str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.py") if "json" in _parsed_by(file)}
    assert found - OURS.keys() == set(), "use tidemark.model.foreign_json"
    assert OURS.keys() - found == set(), "they parse none any more"


def test_schemas_of_logs_become_spark_types_in_one_place() -> None:
    found = {str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.py") if "StructType" in _parsed_by(file)}
    assert found == {"jobs/schemas.py"}


def test_sqlglot_is_asked_in_one_place() -> None:
    found = {str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.py") if _asks_sqlglot(file)}
    assert found == {"sql/foreign_sql.py"}, "use tidemark.sql.foreign_sql"


def _asks_sqlglot(file: Path) -> bool:
    """Whether it can parse, tokenize or write SQL; trees and tokens are values, which anybody may handle."""
    nodes = list(ast.walk(ast.parse(file.read_text())))
    imported = {one.name for node in nodes if isinstance(node, ast.Import) for one in node.names}
    taken = {(node.module or "", one.name) for node in nodes if isinstance(node, ast.ImportFrom) for one in node.names}
    of_sqlglot = {(module, name) for module, name in taken if module.split(".")[0] == "sqlglot"}
    if of_sqlglot - {("sqlglot", "exp"), ("sqlglot", "Token"), ("sqlglot", "TokenType")}:
        return True
    called = {node.func.attr for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)}
    writes = bool(called & {"sql", "maybe_parse"})
    return any(name.split(".")[0] == "sqlglot" for name in imported) or (bool(of_sqlglot) and writes)


def _parsed_by(file: Path) -> set[str]:
    """`json` where it is asked to parse, under whatever name; `StructType` where it is made from JSON."""
    tree = ast.parse(file.read_text())
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "json" and PARSERS & {one.name for one in node.names}:
            found.add("json")
        if isinstance(node, ast.Import):
            found |= {"json" for one in node.names if one.name == "json" and one.asname}
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found |= {"json"} if node.value.id == "json" and node.attr in PARSERS else set()
            found |= {"StructType"} if node.value.id == "StructType" and node.attr == "fromJson" else set()
    return found
