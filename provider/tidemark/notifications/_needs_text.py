"""Texts about objects that need attention: plain, as HTML, and in Slack's markup. Names and reasons add no markup."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import urlencode

__all__ = ["NeedLine", "needs_texts"]


@dataclass(frozen=True)
class NeedLine:
    """One object that needs attention. `need`: the words of its reason. `since`: as it is shown. `commands`: the way
    out.
    """

    need: str
    kind: str
    name: str
    state: str
    since: str | None
    reason: str
    advice: str
    commands: tuple[str, ...]

    @property
    def said(self) -> str:
        """The object and its state."""
        since = "" if self.since is None else f" since {self.since}"
        return f"{self.kind.replace('_', ' ')} {self.name} is {self.state.replace('_', ' ')}{since}"


def needs_texts(
    lines: Sequence[NeedLine], *, total: int, counts: Mapping[str, int], base_url: str, unknown: int = 0
) -> dict[str, str]:
    """`needs_message`, `needs_html` and `needs_slack`: how many objects need attention, then each of the lines with its
    reason and its way out. `total`: with those that have no line. `base_url`: Airflow's; without one there is no link.
    `unknown`: how many objects were not looked at.
    """
    head = f"{_objects(total)} {'needs' if total == 1 else 'need'} attention: {_counted(counts)}."
    if unknown:
        head += f" {_objects(unknown)} not checked: the logs have not answered."
    more = "" if total == len(lines) else f"{_objects(total - len(lines))} more: airflow tidemark overview"
    return {
        "needs_message": "\n".join(part for part in (head, *map(_as_text, lines), more) if part),
        "needs_html": "\n".join(
            part for part in (f"<p>{escape(head)}</p>", _as_html(lines, base_url), more and f"<p>{more}</p>") if part
        ),
        "needs_slack": "\n".join(part for part in (head, *(_as_slack(one, base_url) for one in lines), more) if part),
    }


def _objects(count: int) -> str:
    return f"{count} object{'' if count == 1 else 's'}"


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def _as_text(one: NeedLine) -> str:
    return "\n  ".join((f"{one.need}: {one.said}: {one.reason}", *one.commands))


def _as_html(lines: Sequence[NeedLine], base_url: str) -> str:
    return "<ul>\n" + "\n".join(f"<li>{_html_of(one, base_url)}</li>" for one in lines) + "\n</ul>"


def _html_of(one: NeedLine, base_url: str) -> str:
    name = _linked(one, base_url, lambda link, text: f'<a href="{link}">{text}</a>')
    commands = "".join(f"<br><code>{escape(command)}</code>" for command in one.commands)
    return f"<b>{escape(one.need)}</b>: {name}<br>{escape(one.reason)}<br>{escape(one.advice)}{commands}"


def _as_slack(one: NeedLine, base_url: str) -> str:
    """Slack's own markup, whose three letters `&`, `<` and `>` are written out."""
    name = _linked(one, base_url, lambda link, text: f"<{link}|{text}>")
    commands = "".join(f"\n`{escape(command, quote=False)}`" for command in one.commands)
    return f"*{one.need}*: {name}\n{escape(one.reason, quote=False)}{commands}"


def _linked(one: NeedLine, base_url: str, link_to: Callable[[str, str], str]) -> str:
    said = escape(one.said, quote=False)
    if not base_url:
        return said
    asked = urlencode({"view": "overview", "kind": one.kind, "search": one.name})
    return link_to(escape(f"{base_url.rstrip('/')}/plugin/tidemark?{asked}"), said.replace("|", "¦"))
