"""Notifications about all objects that need attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidemark.hooks.advised_commands import commands_for
from tidemark.hooks.tidemark import DEFAULT_CONN_ID, TidemarkHook
from tidemark.notifications._needs_text import NeedLine, needs_texts
from tidemark.notifications._telling import TellingNotifier
from tidemark.operators._base import is_left_out, one_of, whole_number_of
from tidemark.operators._constants import check_constants

if TYPE_CHECKING:
    from airflow.sdk import Context

    from tidemark.streams.worker.object_needs import Need

__all__ = ["NeedingObjectsNotifier"]

_RANKS = ("failed", "warning", "stopped")


class NeedingObjectsNotifier(TellingNotifier):
    """Reports all objects that need attention, as the overview lists them: streams, replications, pipes, views and all
    others.

    It is for callbacks of tasks and DAGs, and for deadlines (`AsyncCallback(NeedingObjectsNotifier, kwargs={…})`). In
    the triggerer it looks in a thread. It logs a warning, and passes the result to the notifier `tell`. The templates
    of that have `needs_message` (a text), `needs_html` (for an e-mail) and `needs_slack` (in Slack's markup). `needs`
    is the same as a list, the worst first. It reports nothing if no object is as bad as `at_least`. Logs that do not
    answer are a warning in the log, and a line of each report. A second call looks and reports again.

    :param at_least: report objects that are this bad or worse: `failed`, `warning` or `stopped`. (templated)
    :param kind: only objects of this kind, such as `stream`; None: every kind. (templated)
    :param most: how many objects are reported one by one; the others are counted. (templated)
    :param tell: dotted path of one of Airflow's notifier classes; None: only the log.
    :param tell_kwargs: its arguments, plain values. Its own templates are rendered with the report, and know
        `needs_message`, `needs_html`, `needs_slack` and `needs`.
    :param conn_id: Airflow connection of type `tidemark`. (templated)
    :param context: the context that Airflow passes when it calls the notifier in the triggerer; leave it out.
    """

    template_fields: Sequence[str] = ("at_least", "kind", "most", "conn_id")

    def __init__(
        self,
        *,
        at_least: str = "warning",
        kind: str | None = None,
        most: int | str = 20,
        tell: str | None = None,
        tell_kwargs: Mapping[str, Any] | None = None,
        conn_id: str = DEFAULT_CONN_ID,
        context: Context | None = None,
    ) -> None:
        super().__init__(tell=tell, tell_kwargs=tell_kwargs, conn_id=conn_id, context=context)
        self.at_least = at_least
        self.kind = kind
        self.most = most
        check_constants(self, at_least=_rank_of, kind=_kind_of, most=whole_number_of)

    def report(self, context: Context) -> Mapping[str, Any] | None:
        """Looks at store and logs. Raises StoreError, InvalidArgument."""
        from airflow.sdk.configuration import conf

        needs, unknown = self._look()
        if unknown:
            self.log.warning("%s objects were not checked, as their logs have not answered.", unknown)
        elif not needs:
            self.log.info("No object needs attention.")
        if not needs:
            return None
        lines = [_line(one, self.conn_id) for one in needs]
        counts = {word: sum(one.need == word for one in lines) for word in dict.fromkeys(one.need for one in lines)}
        shown = lines[: whole_number_of("most", self.most)]
        base_url = conf.get("api", "base_url", fallback="") or ""
        texts = needs_texts(shown, total=len(lines), counts=counts, unknown=unknown, base_url=base_url)
        self.log.warning("%s", texts["needs_message"])
        return {**texts, "needs": lines}

    def _look(self) -> tuple[Sequence[Need], int]:
        """The objects to report, and how many objects were not looked at."""
        from tidemark.control.object_list import ObjectsWish
        from tidemark.control.object_needs import RANKS, REASONS
        from tidemark.streams.worker.object_needs import look_at_all, needs_page

        hook = TidemarkHook(self.conn_id)
        store, wish, worst = (
            hook.open_store(),
            ObjectsWish(kind=_kind_of("kind", self.kind)),
            _rank_of("at_least", self.at_least),
        )
        known = look_at_all(store, hook.open_table)
        page = store.read(lambda c: needs_page(c, known, wish, after=None, limit=None, now=store.clock()))
        needs = [one for one in page.needs if RANKS[REASONS[one.need].group] <= worst]
        return needs, page.not_looked_at


def _rank_of(argument: str, value: object) -> int:
    return _RANKS.index(one_of(_RANKS, argument, value))


def _kind_of(argument: str, value: object) -> str | None:
    from tidemark.control.object_kinds import KINDS

    return None if is_left_out(value) else one_of(tuple(KINDS), argument, value)


def _line(one: Need, conn_id: str) -> NeedLine:
    from tidemark.control.object_needs import REASONS

    return NeedLine(
        need=REASONS[one.need].words,
        kind=one.shown.kind,
        name=one.shown.name,
        state=one.shown.state,
        since=None if one.since is None or one.since_seen else f"{one.since:%Y-%m-%d %H:%M} UTC",
        reason=one.reason(one.shown),
        advice=one.advice.words,
        commands=commands_for(one.advice, conn_id),
    )
