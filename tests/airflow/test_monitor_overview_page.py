"""The overview in a real Chromium on a real API server: read by everybody, acted in by those who may."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from selenium.webdriver import Chrome, Keys
from selenium.webdriver.common.by import By

from tests.airflow.api_server import ApiServer, api_server, chromium
from tests.airflow.monitored import DAG, Monitored
from tests.airflow.needing import IN_THE_STORE, Needing
from tests.airflow.test_monitor_page import LAKE, Page
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
    many = Monitored(root / "many", f"sqlite:///{root}/many.db").many(60)
    from tidemark.model.statements import TransactionKey

    for number in range(60):
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
        self.until(lambda: len(self.needs()) >= ALL - 1 and "Logs were looked at" in self.reads("#figures"))

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


def test_links_lead_to_the_run_and_to_the_tasks_log(viewer: Overview) -> None:
    viewer.whole()
    links = viewer.chrome.find_elements(By.CSS_SELECTOR, "[data-need='stream stock'] .fact a")
    found = [str(one.get_attribute("href")).removeprefix(viewer.url) for one in links]
    run = f"/dags/{DAG}/runs/scheduled__failed"
    history = "/tidemark/?history=stock&kind=stream&connection=tidemark_default"
    assert found == [f"{run}/tasks/deliver_stock", run, f"/dags/{DAG}", history]


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
    viewer.press("#after", Keys.ENTER)
    viewer.until(lambda: len(viewer.needs()) == 10)
    assert viewer.needs()[0] == "stream bulk_0050"
    viewer.press("#before", Keys.ENTER)
    viewer.until(lambda: viewer.needs()[:1] == ["stream bulk_0000"])
    viewer.press("#search", "bulk_0042")
    viewer.until(lambda: viewer.needs() == ["stream bulk_0042"])


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
