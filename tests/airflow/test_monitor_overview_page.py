"""The overview in a real Chromium on a real API server: read by everybody, acted in by those who may."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
import sqlalchemy as sa
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By

from tests.airflow.api_server import ApiServer, api_server, chromium
from tests.airflow.monitored import DAG, Monitored
from tests.airflow.needing import IN_THE_STORE, Needing
from tests.airflow.test_monitor_page import LAKE, Page
from tidemark.control.command_acts import CommandAct, note_act
from tidemark.control.schema import acts, objects
from tidemark.materialized.worker.views import get_view, suspend_view
from tidemark.pipes.worker.definitions import get_pipe, pause_pipe, resume_pipe
from tidemark.streams.worker.streams import get_stream, open_transaction

pytestmark = [pytest.mark.airflow, pytest.mark.e2e]

ALL = len(IN_THE_STORE) + 3  # looks find three more
HTML = "shop.<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Needing:
    root = Path(LAKE) / "needing" if LAKE else tmp_path_factory.mktemp("needing")
    root.mkdir(parents=True, exist_ok=True)
    return Needing(root).fill()


@pytest.fixture(scope="module")
def server(airflow_home: Path, world: Needing, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    from airflow.models.dag import DagModel  # noqa: TID251 - as the API server knows it
    from airflow.models.dagbundle import DagBundleModel  # noqa: TID251
    from airflow.utils.session import create_session

    with create_session() as session:
        session.merge(DagBundleModel(name="page"))
        session.flush()
        session.merge(DagModel(dag_id=DAG, bundle_name="page", fileloc="x.py"))
    root = tmp_path_factory.mktemp("server")
    well = Monitored(root / "well", f"sqlite:///{root}/well.db").many(3)
    late = Monitored(root / "late", f"sqlite:///{root}/late.db").unusual("orders")
    many = Monitored(root / "many", f"sqlite:///{root}/many.db").many(110)
    from tidemark.model.statements import TransactionKey

    for number in range(110):
        many._fail(f"bulk_{number:04}", TransactionKey(DAG, "r", "t"), times=1)
    acted(many, 25)
    environment = {
        "TIDEMARK_CONTROL_STORE": world.url,
        "AIRFLOW__TIDEMARK__MONITOR_CONN_IDS": "tidemark_default,tidemark_well,tidemark_many,tidemark_late",
        "AIRFLOW_CONN_TIDEMARK_WELL": f'{{"conn_type": "tidemark", "extra": {{"control_store": "{well.url}"}}}}',
        "AIRFLOW_CONN_TIDEMARK_LATE": f'{{"conn_type": "tidemark", "extra": {{"control_store": "{late.url}"}}}}',
        "AIRFLOW_CONN_TIDEMARK_MANY": f'{{"conn_type": "tidemark", "extra": {{"control_store": "{many.url}"}}}}',
    }
    with api_server(root, environment) as running:
        yield running
    with create_session() as session:
        session.query(DagModel).filter_by(dag_id=DAG).delete()


def acted(made: Monitored, count: int) -> None:
    """So many acts, every fifth of them on the stream bulk_0000, with markup in the reasons."""

    def keep(connection: sa.Connection) -> None:
        uids = {row.name: row.uid for row in connection.execute(sa.select(objects.c.name, objects.c.uid))}
        for number in range(count):
            name = f"bulk_{number % 5:04}"
            told = {"kind": "stream", "uid": uids[name], "name": name, "act": "advance", "revision": "{}"}
            why = f"<b>reason {number}</b>"
            connection.execute(sa.insert(acts).values(**told, who="ana", why=why, done_at=made.now))

    made.store.write(keep)


@pytest.fixture(scope="module")
def chrome() -> Iterator[Chrome]:
    with chromium() as running:
        yield running


class Overview(Page):
    """The overview, in or outside of Airflow's frame."""

    def needs(self) -> list[str]:
        script = "return [...document.querySelectorAll('[data-need]')].map((one) => one.dataset.need)"
        return list(self.chrome.execute_script(script))

    def tells(self, selector: str, words: str) -> bool:
        return self.reads(selector) == words

    def need(self, name: str) -> str:
        return self.reads(f"[data-need='{name}']")

    def whole(self, *, inside: bool = False) -> None:
        (self.open_inside if inside else self.open)("?view=overview")
        self.until(lambda: len(self.needs()) >= ALL - 1 and "Logs were read" in self.reads("#figures"))

    def begins(self, name: str, act: str) -> None:
        self.press(f"[data-need='{name}'] [id^='act-{act}-']", Keys.ENTER)
        self.until(lambda: self.chrome.switch_to.active_element.get_attribute("id") == "why")

    def gone(self, name: str) -> None:
        self.until(lambda: name not in self.needs())


@pytest.fixture(scope="module")
def everybody(chrome: Chrome, server: ApiServer) -> Overview:
    return Overview(chrome, server)


@pytest.fixture
def viewer(everybody: Overview) -> Overview:
    everybody.comes_as("viewer")
    return everybody


@pytest.fixture
def admin(everybody: Overview) -> Overview:
    everybody.comes_as("admin")
    return everybody


def test_one_look_says_what_is_wrong_why_since_when_and_the_way_out(viewer: Overview) -> None:
    viewer.whole(inside=True)
    viewer.picture("overview", height=1250)
    assert viewer.needs()[:3] == ["replicated_table shop/shop.payments", "stream clicks", "stream returns"]
    assert "objects need attention" in viewer.reads("#figures")
    stock = viewer.need("stream stock")
    for said in ("stale", "a column has another type", "ago", "UTC", "task log", "scheduled__failed", DAG):
        assert said in stock
    assert viewer.need("pipe shop.bad_files").startswith("warning: running")
    assert viewer.reads("#views [aria-current=page]") == "Overview"
    viewer.press("[data-need='stream stock'] summary", Keys.ENTER)
    viewer.until(lambda: "airflow tidemark streams show stock" in viewer.need("stream stock"))
    viewer.wears("dark")
    assert viewer.barriers() == []
    viewer.wears("light")
    assert viewer.barriers() == []


def test_links_lead_to_the_run_and_to_the_tasks_log(viewer: Overview, world: Needing) -> None:
    viewer.whole()
    links = viewer.chrome.find_elements(By.CSS_SELECTOR, "[data-need='stream stock'] .fact a")
    *found, lineage, history = [str(one.get_attribute("href")).removeprefix(viewer.url) for one in links]
    run = f"/dags/{DAG}/runs/scheduled__failed"
    assert found == [f"{run}/tasks/deliver_stock", run, f"/dags/{DAG}"]
    assert lineage.startswith("/tidemark/?view=lineage&object=stream%2F")
    uid = get_stream(world.store, "stock").uid
    assert history == f"/tidemark/?history={uid}&kind=stream&connection=tidemark_default"


def test_each_of_two_objects_of_one_name_leads_to_its_own_history(viewer: Overview, world: Needing) -> None:
    first = get_pipe(world.store, "shop.good_files").uid
    like = world.store.read(
        lambda c: dict(c.execute(sa.select(objects).where(objects.c.uid == first)).mappings().one())
    )
    world.store.write(lambda c: c.execute(objects.insert(), {**like, "uid": "second"}))
    try:
        viewer.open("?view=objects&search=shop.good_files")
        row = "tr[data-any-object='pipe shop.good_files']"
        links = viewer.until(lambda: viewer.chrome.find_elements(By.CSS_SELECTOR, f"{row} a[aria-label^=History]"))
        found = [str(link.get_attribute("href")) for link in links]
        assert {parse_qs(urlsplit(link).query)["history"][0] for link in found} == {first, "second"}
        for link in found:
            viewer.chrome.get(link)
            viewer.until(lambda: viewer.reads("#where") == "pipe shop.good_files")
            viewer.one("#history")
    finally:
        world.store.write(lambda c: c.execute(objects.delete().where(objects.c.uid == "second")))


def test_a_paused_replication_has_its_reason_the_last_task_and_what_depends_on_it(viewer: Overview) -> None:
    viewer.whole()
    crm, table = "replication crm", "replicated_table shop/shop.stock"
    viewer.until(lambda: "nothing depends on it" in viewer.need(crm))
    for said in (
        "it is paused: the CRM moves, by ana",
        "since",
        "log of the last task",
        "last run scheduled__2026-11-22",
    ):
        assert said in viewer.need(crm)
    link = f"[data-need='{table}'] a[href*='view=lineage']"
    assert viewer.reads(link) == "1 table or object depends on it"
    assert str(viewer.one(link).get_attribute("aria-label")).startswith(viewer.reads(link))
    assert viewer.barriers() == []
    viewer.press(link, Keys.ENTER)
    viewer.until(lambda: "shop/shop.stock" in viewer.reads("#centre h2"))


def test_a_stream_behind_its_usual_lag_is_there_in_these_words(viewer: Overview) -> None:
    viewer.open("?view=overview&connection=tidemark_late")
    viewer.until(lambda: viewer.needs() == ["stream orders"])
    orders = viewer.need("stream orders")
    assert orders.startswith("behind its usual lag: behind")
    assert "it is behind its usual lag of " in orders
    viewer.press("[data-need='stream orders'] summary", Keys.ENTER)
    viewer.until(lambda: "airflow tidemark objects history stream orders" in viewer.need("stream orders"))


def test_nothing_wrong_is_said_with_figures(viewer: Overview) -> None:
    viewer.open("?view=overview&connection=tidemark_well")
    viewer.until(lambda: "Nothing needs attention" in viewer.reads("#empty"))
    assert "3 streams" in viewer.reads("#empty")
    assert viewer.barriers() == []


def test_many_come_in_parts(viewer: Overview) -> None:
    viewer.open("?view=overview&connection=tidemark_many")
    viewer.until(lambda: len(viewer.needs()) == 50)
    viewer.chrome.execute_script("const next = document.getElementById('after'); next.click(); next.click()")
    viewer.until(lambda: viewer.needs()[:1] == ["stream bulk_0050"])
    viewer.press("#after", Keys.ENTER)
    viewer.until(lambda: len(viewer.needs()) == 10)
    assert viewer.needs()[0] == "stream bulk_0100"
    last = viewer.chrome.current_url
    viewer.chrome.refresh()
    viewer.until(lambda: len(viewer.needs()) == 10)
    for first in ("stream bulk_0050", "stream bulk_0000"):
        assert viewer.reads("#before") == "Previous"
        viewer.press("#before", Keys.ENTER)
        viewer.until(lambda first=first: viewer.needs()[:1] == [first])
    viewer.open("?view=overview&connection=tidemark_well")
    viewer.until(lambda: "Nothing needs attention" in viewer.reads("#empty"))
    viewer.chrome.get(last)  # as by a link: the part before is not known
    viewer.until(lambda: viewer.reads("#before") == "First")
    viewer.press("#before", Keys.ENTER)
    viewer.until(lambda: viewer.needs()[:1] == ["stream bulk_0000"])
    viewer.press("#search", "bulk_0042")
    viewer.until(lambda: viewer.needs() == ["stream bulk_0042"])


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("connection=tidemark_many", "110 of 110 objects need attention: 110 failed."),
        ("connection=tidemark_many&search=bulk_004", "10 objects that fit need attention: 10 failed."),
        ("connection=tidemark_many&search=bulk_0042", "1 object that fits needs attention: 1 failed."),
        ("kind=pipe", "2 of 3 objects need attention: "),
    ],
)
def test_figures_are_of_the_objects_that_fit(viewer: Overview, asked: str, said: str) -> None:
    viewer.open(f"?view=overview&{asked}")
    viewer.until(lambda: viewer.reads("#figures").startswith(said))


def test_a_kind_without_any_object_stays_the_one_that_is_chosen(viewer: Overview) -> None:
    viewer.open("?view=overview&connection=tidemark_well&kind=pipe")
    viewer.until(lambda: "No object fits" in viewer.reads("#empty"))
    assert viewer.one("#kind").get_attribute("value") == "pipe"


def test_older_acts_are_reached_by_keyboard_for_all_objects_and_for_one(viewer: Overview) -> None:
    viewer.open("?view=overview&connection=tidemark_many")
    for newest in (24, 14, 4):
        said = f"<b>reason {newest}</b>"
        viewer.until(partial(viewer.tells, "#acts tbody td:last-child", said))
        assert len(viewer.chrome.find_elements(By.CSS_SELECTOR, "#acts tbody tr")) == min(10, newest + 1)
        assert len(viewer.needs()) == 50
        if newest > 4:
            viewer.press("#older-acts", Keys.ENTER)
    assert not viewer.one("#older-acts").is_enabled()
    assert viewer.barriers() == []
    viewer.press("#newest-acts", Keys.ENTER)
    viewer.until(lambda: "reason 24" in viewer.reads("#acts"))
    viewer.open("?history=bulk_0000&kind=stream&connection=tidemark_many")
    whys = "return [...document.querySelectorAll('#acts tbody td:last-child')].map((one) => one.textContent)"
    wanted = [f"<b>reason {number}</b>" for number in (20, 15, 10, 5, 0)]
    viewer.until(lambda: viewer.chrome.execute_script(whys) == wanted)


def test_an_act_by_a_command_names_the_user_of_the_operating_system(viewer: Overview, world: Needing) -> None:
    left = get_stream(world.store, "left")
    note_act(world.store, CommandAct("stream", "redo", "<i>deploy</i>", ""), left.uid, left.name)
    viewer.open("?history=left&kind=stream")
    viewer.until(lambda: "<i>deploy</i>" in viewer.reads("#acts"))
    assert "operating-system user, by a command" in viewer.reads("#acts")
    assert "no reason given" in viewer.reads("#acts")
    assert viewer.barriers() == []


def test_who_may_not_act_has_the_command_and_a_button_that_copies_it(viewer: Overview, world: Needing) -> None:
    viewer.whole()
    assert viewer.chrome.find_elements(By.CSS_SELECTOR, ".acts button") == []
    pipe = "[data-need='pipe shop.orders_pipe']"
    viewer.press(f"{pipe} details[id^=acts-] summary", Keys.ENTER)
    viewer.press(f"{pipe} details[id^=acts-] .command button", Keys.ENTER)
    viewer.until(lambda: "Copied" in viewer.need("pipe shop.orders_pipe"))
    viewer.press("#search", Keys.CONTROL + "v")
    assert viewer.one("#search").get_attribute("value") == "airflow tidemark pipes resume shop.orders_pipe"
    assert get_pipe(world.store, "shop.orders_pipe").paused_at is not None


def test_by_keyboard_alone_a_view_is_resumed_with_a_reason(admin: Overview, world: Needing) -> None:
    admin.whole(inside=True)
    admin.begins("dynamic_table city_counts", "resume")
    assert "Lost: Nothing" in admin.reads("dialog")
    admin.picture("act")
    assert admin.barriers() == []
    admin.press("#act-yes", Keys.ENTER)
    admin.until(lambda: "Give a reason" in admin.reads("#act-trouble"))
    admin.press("#why", "the map is needed")
    admin.press("#act-yes", Keys.ENTER)
    admin.until(lambda: not admin.chrome.find_elements(By.CSS_SELECTOR, "dialog"))
    admin.until(lambda: "the map is needed" in admin.reads("#acts"))
    assert "admin" in admin.reads("#acts")
    assert get_view(world.store, "city_counts").suspended is None
    suspend_view(world.store, "city_counts", why="again", by="test")


def test_escape_does_nothing_and_gives_the_focus_back(admin: Overview, world: Needing) -> None:
    admin.whole()
    admin.begins("stream left", "release")
    admin.press("#why", "a" + Keys.ESCAPE)
    admin.until(lambda: not admin.chrome.find_elements(By.CSS_SELECTOR, "dialog"))
    admin.until(lambda: "act-release" in (admin.chrome.switch_to.active_element.get_attribute("id") or ""))
    assert open_transaction(world.store, "left").submitted is False


def test_a_lock_that_was_left_is_released(admin: Overview, world: Needing) -> None:
    from tidemark.errors import TransactionNotFound

    admin.whole()
    admin.begins("stream left", "release")
    admin.press("#why", "its worker is gone")
    admin.click("#act-yes")
    admin.gone("stream left")
    with pytest.raises(TransactionNotFound):
        open_transaction(world.store, "left")


def test_a_refused_act_says_what_has_changed(admin: Overview, world: Needing) -> None:
    admin.whole()
    admin.begins("pipe shop.orders_pipe", "drop")
    resume_pipe(world.store, "shop.orders_pipe", by="bob")
    admin.press("#why", "nobody needs it")
    admin.click("#act-yes")
    admin.until(lambda: "state was PAUSED and is RUNNING" in admin.reads("#act-trouble"))
    assert get_pipe(world.store, "shop.orders_pipe").paused_at is None
    admin.click("#act-no")
    admin.gone("pipe shop.orders_pipe")
    pause_pipe(world.store, "shop.orders_pipe", by="bob")


def test_by_keyboard_a_healthy_stream_is_delivered_again_from_a_window_that_is_picked(
    admin: Overview, world: Needing
) -> None:
    before = get_stream(world.store, "payments")
    admin.open_inside("?history=payments&kind=stream")
    admin.until(lambda: admin.chrome.find_elements(By.CSS_SELECTOR, "[id^='act-replay-']") != [])
    admin.press("[id^='act-replay-']", Keys.ENTER)
    admin.until(lambda: admin.chrome.switch_to.active_element.get_attribute("id") == "act-field-window")
    admin.press("#why", "a target was loaded by hand")
    admin.press("#act-yes", Keys.ENTER)
    admin.until(lambda: "it is required" in admin.reads("#act-field-window-trouble"))
    assert admin.one("#act-field-window").get_attribute("aria-invalid") == "true"
    assert admin.chrome.switch_to.active_element.get_attribute("id") == "act-field-window"
    admin.picture("act-with-field")
    assert admin.barriers() == []
    admin.press("#act-field-window", "(9")
    admin.press("#act-yes", Keys.ENTER)
    admin.until(lambda: not admin.chrome.find_elements(By.CSS_SELECTOR, "dialog"))
    after = get_stream(world.store, "payments")
    assert (after.offset.version, before.offset.version) == (9, 12)
    admin.open("?view=overview")
    admin.until(lambda: "window: 9" in admin.reads("#acts"))


def test_the_outcome_of_an_act_is_said_whatever_closes_its_form(admin: Overview, world: Needing) -> None:
    admin.open("?history=shop.orders_pipe&kind=pipe")
    admin.until(lambda: admin.chrome.find_elements(By.CSS_SELECTOR, "[id^='act-resume-']"))
    admin.sends_through(
        "if (told.method === 'POST') await new Promise((done) => { window.goesOn = done; }); return send(url, told)"
    )
    escapes = partial(ActionChains(admin.chrome).send_keys(Keys.ESCAPE, Keys.ESCAPE, Keys.ESCAPE).perform)
    closes = partial(admin.chrome.execute_script, "document.querySelector('dialog').close()")  # as a phone does
    for act, ends, stays in (("resume", escapes, True), ("pause", closes, False)):
        admin.press(f"[id^='act-{act}-']", Keys.ENTER)
        admin.press("#why", "the night")
        admin.click("#act-yes")
        admin.until(lambda: admin.chrome.execute_script("return Boolean(window.goesOn)"))
        ends()
        assert bool(admin.chrome.find_elements(By.CSS_SELECTOR, "dialog[open]")) is stays
        admin.chrome.execute_script("window.goesOn(); window.goesOn = null")
        admin.until(lambda: admin.reads("#done").endswith("It is done."))
        admin.until(lambda act=act: admin.chrome.find_elements(By.CSS_SELECTOR, f"[id^='act-{act}-']") == [])
    assert get_pipe(world.store, "shop.orders_pipe").paused_at is not None


def test_choices_that_cannot_be_read_are_not_known_and_the_form_says_why(admin: Overview) -> None:
    admin.open("?history=payments&kind=stream")
    admin.until(lambda: admin.chrome.find_elements(By.CSS_SELECTOR, "[id^='act-replay-']"))
    admin.sends_through(
        "if (!url.startsWith('api/v1/objects/stream/')) return send(url, told);"
        "return Response.json({ detail: 'The control store does not answer.' }, { status: 503 })"
    )
    admin.press("[id^='act-replay-']", Keys.ENTER)
    admin.until(lambda: admin.reads("#act-trouble") == "The control store does not answer.")
    assert admin.reads("#act-field-window") == "Not known"
    admin.press("#why", Keys.ESCAPE)


def test_any_number_of_names_is_given_with_commas_or_line_breaks(admin: Overview) -> None:
    names = [f"column_{number:03}" for number in range(150)]
    admin.open("?history=payments&kind=stream")
    admin.press("[id^='act-rebase-']", Keys.ENTER)
    admin.until(lambda: admin.chrome.switch_to.active_element.get_attribute("id") == "act-field-keys")
    admin.press("#act-field-keys", "\n".join(names[:100]) + ", " + ", ".join(names[100:]))
    admin.sends_through("if (told.method === 'POST') window.sent = told.body; return send(url, told)")
    admin.press("#why", "a test")
    admin.click("#act-yes")
    sent = admin.until(lambda: admin.chrome.execute_script("return window.sent"))
    assert json.loads(sent)["values"]["keys"] == names
    admin.until(lambda: admin.reads("#act-trouble") != "")  # the stream can still be read
    admin.press("#why", Keys.ESCAPE)


def test_names_and_reasons_with_html_are_shown_as_text(admin: Overview, world: Needing) -> None:
    world.monitored._clock(hours=0)
    world.pipe(f'"{HTML}"')
    name = next(one.name for one in world._all_pipes() if "img" in one.name)  # type: ignore[attr-defined]
    pause_pipe(world.store, name, by="test")
    admin.open("?view=overview&kind=pipe")
    admin.until(lambda: any("img" in one for one in admin.needs()))
    assert "<img src=x" in admin.text
    assert admin.chrome.find_elements(By.CSS_SELECTOR, "main img") == []


def test_a_narrow_screen_scrolls_only_down(viewer: Overview) -> None:
    viewer.whole()
    viewer.chrome.set_window_size(500, 900)
    try:
        wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        viewer.until(lambda: viewer.chrome.execute_script(wide) <= 0)
    finally:
        viewer.chrome.set_window_size(1440, 960)
