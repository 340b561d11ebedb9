"""Texts of what needs attention: for people, for e-mail and for Slack. No name and no reason adds markup."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from tests.airflow.conftest import HOME  # sets Airflow's home before Airflow is imported
from tidemark.notifications._needs_text import NeedLine, needs_texts

assert HOME
STOCK = NeedLine(
    "failed", "stream", "stock", "may_be_stale", "2026-11-27 10:00 UTC", "a column has another type",
    "Look at it.", ("airflow tidemark streams show stock",),
)  # fmt: skip
ODD = NeedLine(
    "warning", "replicated_table", "shop/<b>|a&b", "failed", None, "<script>alert('x')</script> & `<!channel>`",
    "Look.", (),
)  # fmt: skip


def texts(*lines: NeedLine, total: int | None = None, base_url: str = "http://airflow/a/") -> dict[str, str]:
    counts = {line.need: 1 for line in lines}
    return needs_texts(lines, total=total or len(lines), counts=counts, base_url=base_url)


class Seen(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name == "href"]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_text_has_figures_then_each_object_with_its_reason_and_its_way_out() -> None:
    assert texts(STOCK, ODD, total=5)["needs_message"].splitlines() == [
        "5 objects need attention: 1 failed, 1 warning.",
        "failed: stream stock is may be stale since 2026-11-27 10:00 UTC: a column has another type",
        "  airflow tidemark streams show stock",
        "warning: replicated table shop/<b>|a&b is failed: <script>alert('x')</script> & `<!channel>`",
        "3 objects more: airflow tidemark overview",
    ]
    assert texts(STOCK)["needs_message"].startswith("1 object needs attention: 1 failed.")


def test_html_links_to_the_page_and_takes_names_and_reasons_as_text() -> None:
    seen = Seen(texts(STOCK, ODD)["needs_html"])
    assert set(seen.tags) == {"p", "ul", "li", "b", "a", "br", "code"}
    assert seen.links[0] == "http://airflow/a/plugin/tidemark?view=overview&kind=stream&search=stock"
    assert "<script>alert('x')</script> & `<!channel>`" in seen.text
    assert Seen(texts(STOCK, base_url="")["needs_html"]).links == []


def test_slack_gets_links_and_no_mention_from_a_reason() -> None:
    stock, why, way_out, odd, reason = texts(STOCK, ODD)["needs_slack"].splitlines()[1:]
    link = "http://airflow/a/plugin/tidemark?view=overview&amp;kind=stream&amp;search=stock"
    assert stock == f"*failed*: <{link}|stream stock is may be stale since 2026-11-27 10:00 UTC>"
    assert (why, way_out) == ("a column has another type", "`airflow tidemark streams show stock`")
    assert reason == "&lt;script&gt;alert('x')&lt;/script&gt; &amp; `&lt;!channel&gt;`"
    assert odd.endswith("|replicated table shop/&lt;b&gt;¦a&amp;b is failed>")
