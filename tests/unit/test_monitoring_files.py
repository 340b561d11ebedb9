"""Dashboard, alert rules and mapping: they can be read, and name no metric and no tag that is not sent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from tidemark.model.metrics import METRICS, Metric, MetricType

FILES = Path(__file__).parents[2] / "provider" / "docs" / "monitoring"
DASHBOARD: dict[str, Any] = json.loads((FILES / "grafana.json").read_text())
RULES: list[dict[str, Any]] = yaml.safe_load((FILES / "alerts.yaml").read_text())["groups"][0]["rules"]
MAPPINGS: list[dict[str, Any]] = yaml.safe_load((FILES / "statsd_mapping.yaml").read_text())["mappings"]

BY_NAME = {metric.prometheus: metric for metric in METRICS.values()}
FUNCTIONS = {
    "max", "min", "sum", "topk", "bottomk", "rate", "increase", "time", "absent", "avg_over_time",
}  # fmt: skip
TOKEN = re.compile(
    r"\s*(?:(?P<text>\"(?:[^\"\\]|\\.)*\")|(?P<range>\[(?:\d+[smhdwy]|\$__rate_interval)\])|(?P<name>[a-zA-Z_:][\w:]*)"
    r"|(?P<number>\d+(?:\.\d+)?)|(?P<sign>=~|!~|!=|>=|<=|==|[-+*/%<>=(){},]))"
)
DURATION = re.compile(r"\d+[smhd]")
WITHIN = {"(": ")", "{": "}"}


@dataclass
class Query:
    """A PromQL expression as far as these files go: its metrics with their labels, and the labels that it is by."""

    text: str
    metrics: dict[str, set[str]] = field(default_factory=dict)
    by: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.tokens = list(self._tokens())
        self._balanced()
        for number, (kind, token) in enumerate(self.tokens):
            after = self.tokens[number + 1][1] if number + 1 < len(self.tokens) else ""
            if kind != "name" or self._inside(number, "{"):
                continue
            if token == "by":
                self.by |= {one for _, one in self._group(number + 1) if one != ","}
            elif token in FUNCTIONS:
                assert after in ("(", "by"), f"{token} is no call in {self.text}"
            elif token != "or" and not self._of_by(number):
                labels = self._group(number + 1) if after == "{" else []
                names = {
                    one
                    for (is_name, one), (_, sign) in pairwise(labels)
                    if is_name == "name" and sign.startswith(("=", "!"))
                }
                self.metrics.setdefault(token, set()).update(names)

    def _tokens(self) -> Iterator[tuple[str, str]]:
        place = 0
        while place < len(self.text.rstrip()):
            found = TOKEN.match(self.text, place)
            assert found is not None, f"unreadable: {self.text[place:]!r}"
            assert found.lastgroup is not None
            yield found.lastgroup, found[found.lastgroup]
            place = found.end()

    def _balanced(self) -> None:
        opened: list[str] = []
        for _, token in self.tokens:
            if token in WITHIN:
                opened.append(WITHIN[token])
            elif token in WITHIN.values():
                assert opened, self.text
                assert opened.pop() == token, self.text
        assert opened == [], self.text

    def _inside(self, number: int, bracket: str) -> bool:
        depth = sum((token == bracket) - (token == WITHIN[bracket]) for _, token in self.tokens[:number])
        return depth > 0

    def _group(self, start: int) -> list[tuple[str, str]]:
        """The tokens between the bracket at that place and its end."""
        closing = WITHIN[self.tokens[start][1]]
        end = next(place for place in range(start, len(self.tokens)) if self.tokens[place][1] == closing)
        return self.tokens[start + 1 : end]

    def _of_by(self, number: int) -> bool:
        """Whether the token is a label of a `by (…)`."""
        opened = [place for place in range(number) if self.tokens[place][1] == "("]
        closed = [place for place in range(number) if self.tokens[place][1] == ")"]
        return bool(opened) and self.tokens[opened[-1] - 1][1] == "by" and (not closed or closed[-1] < opened[-1])


def tags(metric: Metric) -> set[str]:
    return {*metric.objects, *metric.tags}


def checked(text: str) -> Query:
    query = Query(text)
    assert query.metrics, text
    for name, labels in query.metrics.items():
        assert name in BY_NAME, f"{name} is not sent: {text}"
        assert labels | query.by <= tags(BY_NAME[name]), text
        counted = BY_NAME[name].type is MetricType.COUNTER
        assert counted == bool(re.search(rf"\b(rate|increase)\({name}\b", text)), f"a counter takes a rate: {text}"
    return query


def panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = DASHBOARD["panels"]
    return found


def queries() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel["targets"]]


@pytest.mark.parametrize(
    "wrong",
    [
        "max(airflow_tidemark_needs", "airflow_tidemark_lags", "max by (dag) (airflow_tidemark_object_severity)",
        'airflow_tidemark_objects{object="a"}', "airflow_tidemark_object_rows_total",
        "rate(airflow_tidemark_needs[5m])",
        "airflow_tidemark_needs ! 3", "rate(airflow_tidemark_object_rows_total[5])", "1 + 2",
    ],
)  # fmt: skip
def test_the_check_finds_what_is_wrong(wrong: str) -> None:
    with pytest.raises(AssertionError):
        checked(wrong)


@pytest.mark.parametrize("text", queries())
def test_each_query_of_the_dashboard_asks_for_what_is_sent(text: str) -> None:
    checked(text.replace("[$__rate_interval]", "[5m]"))


def test_legends_and_variables_name_labels_of_their_queries() -> None:
    for panel in panels():
        for target in panel["targets"]:
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= Query(target["expr"]).by, panel["title"]
    variables = {one["name"] for one in DASHBOARD["templating"]["list"]}
    assert {found for text in queries() for found in re.findall(r"\$(\w+)", text)} - {"__rate_interval"} <= variables
    for one in DASHBOARD["templating"]["list"]:
        if one["type"] == "query":
            name, label = re.findall(r"label_values\((\w+)(?:{.*})?, (\w+)\)", one["query"]["query"])[0]
            assert label in tags(BY_NAME[name])


def test_the_dashboard_shows_every_metric_of_objects_and_no_panel_covers_another() -> None:
    shown = {name for text in queries() for name in Query(text).metrics}
    wanted = {
        metric.prometheus for metric in METRICS.values() if metric.looks or metric.name.startswith(("object_", "task_"))
    }
    assert wanted - {METRICS["task_duration"].prometheus} <= shown
    cells: set[tuple[int, int]] = set()
    for panel in panels():
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        own = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not own & cells, panel["title"]
        cells |= own
    assert len({panel["id"] for panel in panels()}) == len({panel["title"] for panel in panels()}) == len(panels())


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_each_alert_can_fire_and_says_of_what(rule: dict[str, Any]) -> None:
    assert rule.keys() - {"for"} == {"alert", "expr", "labels", "annotations"}
    assert re.fullmatch(r"Tidemark\w+", rule["alert"])
    assert DURATION.fullmatch(rule.get("for", "0m"))
    assert rule["labels"]["severity"] in ("critical", "warning")
    query = checked(rule["expr"])
    assert re.search(r"[<>]|==|absent", rule["expr"]), "it would always fire"
    said = " ".join(rule["annotations"].values())
    assert set(re.findall(r"\$labels\.(\w+)", said)) <= query.by
    assert rule["annotations"].keys() == {"summary", "description"}


def test_alerts_have_names_of_their_own() -> None:
    assert len({rule["alert"] for rule in RULES}) == len(RULES)


def test_the_mapping_makes_the_names_of_opentelemetry_of_every_metric() -> None:
    made = {rule["match"].removeprefix("airflow.tidemark."): rule for rule in MAPPINGS if rule.get("action") != "drop"}
    assert made.keys() == METRICS.keys()
    for name, metric in METRICS.items():
        wanted = metric.prometheus.replace("_milliseconds", "_seconds")  # the exporter divides timers
        assert made[name]["name"] == wanted
        ttl = None if metric.type is not MetricType.GAUGE else "15m" if metric.looks else "25h"
        assert made[name].get("ttl") == ttl, "a gauge of an object that was dropped has to go"
    dropped = [rule["match"] for rule in MAPPINGS if rule.get("action") == "drop"]
    most = max(len(metric.objects) for metric in METRICS.values())
    assert dropped == ["airflow.tidemark.*" + ".*" * parts for parts in range(1, most + 2)]
