"""The page in a real Chromium on a real API server under a sub-path: found, read, searched, turned, and refused."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import sqlalchemy as sa
from axe_selenium_python import Axe
from selenium.webdriver import ActionChains, Chrome, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from tests.airflow.api_server import ApiServer, api_server, chromium
from tests.airflow.historic import Changes, old_partitions, tokens
from tests.airflow.monitored import DAG, Monitored
from tests.airflow.monitored_replications import WORST_FIRST, MonitoredReplications
from tests.dag_runs import run_registered
from tests.postgresql import PASSWORD, USER, PostgresServer
from tests.unit.lake.delta_directories import born
from tidemark.control.schema import objects
from tidemark.control.store import ControlStore
from tidemark.streams.store.schema import transactions

pytestmark = [pytest.mark.airflow, pytest.mark.e2e]

NEXT_WINDOW = re.compile(r"nothing is new|ready")  # another test may have written to the table
PATIENCE = 90
REFRESH = 10
FRAME = (By.CSS_SELECTOR, "iframe[title=Tidemark]")
SCREENSHOTS = os.environ.get("TIDEMARK_SCREENSHOTS")  # a directory for the pictures of the docs
LAKE = os.environ.get("TIDEMARK_SCREENSHOTS_LAKE")  # a new directory whose name may be seen in them
STREAMS = "?view=streams"
CONNECTIONS = [f"tidemark_{name}" for name in ("default", "many", "new", "changes", "taken")]


class Page:
    """The page as a logged-in reader sees it. `open` shows it alone, which is quicker; `open_inside` in Airflow."""

    def __init__(self, chrome: Chrome, server: ApiServer) -> None:
        self.chrome = chrome
        self.url = server.url
        self.who = ""

    def comes_as(self, name: str) -> None:
        """Logs in unless this user is."""
        if self.who != name:
            self.log_in(name)

    def log_in(self, name: str) -> None:
        self.chrome.delete_all_cookies()
        self.chrome.get(f"{self.url}/auth/login")
        self.chrome.delete_all_cookies()
        self.one("input[name=username]").send_keys(name)
        self.one("input[name=password]").send_keys(f"{name}-password", Keys.ENTER)
        self.until(lambda: "/auth/" not in self.chrome.current_url)
        self.who = name

    def open(self, question: str = STREAMS) -> None:
        self.chrome.switch_to.default_content()
        self.chrome.get(f"{self.url}/tidemark/{question}")

    def open_inside(self, question: str = STREAMS) -> None:
        self.chrome.switch_to.default_content()
        self.chrome.get(f"{self.url}/plugin/tidemark{question}")
        self.enter()

    def enter(self) -> None:
        self.chrome.switch_to.default_content()
        self.until(lambda: self.chrome.find_elements(*FRAME))
        self.chrome.switch_to.frame(self.chrome.find_element(*FRAME))

    def one(self, selector: str) -> WebElement:
        return self.until(lambda: next(iter(self.chrome.find_elements(By.CSS_SELECTOR, selector)), None))

    def click(self, selector: str) -> None:
        """On what is there then: the page draws itself anew meanwhile."""
        self.until(lambda: [self.one(selector).click()])

    def reads(self, selector: str) -> str:
        """The text of what is there then, as `click`."""
        return self.until(lambda: [self.one(selector).text])[0]

    def label(self, selector: str) -> str | None:
        """What a screen reader says of what is there then, as `click`."""
        return self.until(lambda: [self.one(selector).get_attribute("aria-label")])[0]

    def press(self, selector: str, keys: str) -> None:
        """Keys for an element, as `click`."""
        self.until(lambda: [self.one(selector).send_keys(keys)])

    def until(self, seen: Callable[[], object], patience: float = PATIENCE) -> Any:
        """What `seen` gives once it is something: meanwhile the page may draw itself anew, or show it only later."""
        from selenium.common.exceptions import ElementNotInteractableException as Unshown
        from selenium.common.exceptions import StaleElementReferenceException as Redrawn

        waiting = WebDriverWait(self.chrome, patience, ignored_exceptions=[Redrawn, Unshown])
        return waiting.until(lambda _: seen())

    def sends_through(self, script: str) -> None:
        """From now on the page's questions take this way, until it is opened again."""
        self.chrome.execute_script(f"const send = fetch; window.fetch = async (url, told) => {{ {script} }}")

    def is_answered(self, change: str) -> None:
        """From now on the page's answers are whole, and changed like that: `found`."""
        ask = "const answer = await send(url, { ...told, headers: {} }), found = await answer.json();"
        self.sends_through(f"{ask} {change}; return Response.json(found, {{ status: answer.status }})")

    def refreshes(self) -> None:
        """As its timer does after ten seconds."""
        self.chrome.execute_script("document.dispatchEvent(new Event('visibilitychange'))")

    def streams(self) -> list[str]:
        script = "return [...document.querySelectorAll('tr[data-stream]')].map((row) => row.dataset.stream)"
        return list(self.chrome.execute_script(script))

    def objects(self) -> list[str]:
        script = "return [...document.querySelectorAll('tr[data-object]')].map((row) => row.dataset.object)"
        return list(self.chrome.execute_script(script))

    def tables(self) -> list[str]:
        script = "return [...document.querySelectorAll('tr[data-table]')].map((row) => row.dataset.table)"
        return list(self.chrome.execute_script(script))

    def every_object(self) -> list[str]:
        script = "return [...document.querySelectorAll('tr[data-any-object]')].map((row) => row.dataset.anyObject)"
        return list(self.chrome.execute_script(script))

    def progress(self) -> tuple[str, str, str]:
        """Role, name and value of the one progress bar, as a screen reader has them."""

        def seen() -> list[tuple[str, str, str]]:
            bar = self.one("progress")
            return [(bar.aria_role, bar.accessible_name, str(bar.get_attribute("value")))]

        return self.until(seen)[0]

    def wears(self, theme: str) -> None:
        """Airflow around it is dark or light, and it follows."""
        other = {"dark": "light", "light": "dark"}[theme]
        self.chrome.switch_to.default_content()
        around = "const around = document.documentElement.classList; around.remove(arguments[1]);"
        self.chrome.execute_script(f"{around} around.add(arguments[0])", theme, other)
        self.enter()
        self.until(lambda: theme in (self.one("html").get_attribute("class") or ""))

    def barriers(self) -> list[tuple[str, list[str]]]:
        """What keeps somebody from reading it, by axe's rules."""
        axe = Axe(self.chrome)
        axe.inject()
        found = axe.run(context={"include": [["body"]]})["violations"]
        return [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]

    def shows(self, *names: str) -> None:
        self.until(lambda: self.streams() == list(names))

    def row(self, name: str) -> str:
        return self.reads(f"tr[data-stream={name}]")

    @property
    def text(self) -> str:
        return self.chrome.find_element(By.TAG_NAME, "body").text

    def picture(self, name: str, *, height: int = 960) -> None:
        if SCREENSHOTS:
            self.chrome.switch_to.default_content()
            self.chrome.set_window_size(1440, height)
            self.chrome.save_screenshot(str(Path(SCREENSHOTS) / f"{name}.png"))
            self.chrome.set_window_size(1440, 960)
            self.enter()


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory) -> Monitored:
    root = tmp_path_factory.mktemp("page")
    made = Monitored(Path(LAKE) if LAKE else root / "lake", f"sqlite:///{root}/control.db")
    made.store.migrate()
    return made.fill()


@pytest.fixture(scope="module")
def replicated(monitored: Monitored, tmp_path_factory: pytest.TempPathFactory) -> MonitoredReplications:
    """Beside the streams, in the same store."""
    root = Path(LAKE) / "replicated" if LAKE else tmp_path_factory.mktemp("replicated")
    return MonitoredReplications(root, monitored.url).fill()


@pytest.fixture(scope="module")
def source(source_server: PostgresServer) -> str:
    """The connection of a database with a table that can be replicated, and one that cannot."""
    database = source_server.new_database()
    source_server.sql("CREATE TABLE orders (id bigint PRIMARY KEY, note text); CREATE TABLE log (line text)", database)
    at = {"host": "127.0.0.1", "port": source_server.port, "schema": database}
    return json.dumps({"conn_type": "postgres", "login": USER, "password": PASSWORD, **at})


@pytest.fixture(scope="module")
def changes(monitored: Monitored, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a store with a change stream that has 250 old partitions beside the new ones, and a landing table."""
    root = tmp_path_factory.mktemp("changes")
    url = f"sqlite:///{root}/changes.db"
    store = ControlStore(url)
    store.migrate()
    Changes(root, url, monitored.now)
    old_partitions(store, 250, monitored.now)
    born(root / "landing")
    tokens(store, root / "landing", monitored.now)
    return url


@pytest.fixture(scope="module")
def server(
    airflow_home: Path,
    monitored: Monitored,
    replicated: MonitoredReplications,
    source: str,
    changes: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ApiServer]:
    from airflow.models.dag import DagModel  # noqa: TID251 - as the API server knows it
    from airflow.models.dagbundle import DagBundleModel  # noqa: TID251
    from airflow.utils.session import create_session

    with create_session() as session:
        session.merge(DagBundleModel(name="page"))
        session.flush()
        session.merge(DagModel(dag_id=DAG, bundle_name="page", fileloc="x.py"))
    root = tmp_path_factory.mktemp("server")
    taken = f"sqlite:///{root}/taken.db"
    windows_of_a_dag(Monitored(root / "taken", taken), 60)
    many = Monitored(root / "many", f"sqlite:///{root}/many.db").many(120)
    environment = {
        "TIDEMARK_CONTROL_STORE": monitored.url,
        "AIRFLOW__TIDEMARK__MONITOR_CONN_IDS": ",".join(CONNECTIONS),
        "AIRFLOW_CONN_TIDEMARK_TAKEN": f'{{"conn_type": "tidemark", "extra": {{"control_store": "{taken}"}}}}',
        "AIRFLOW_CONN_TIDEMARK_CHANGES": f'{{"conn_type": "tidemark", "extra": {{"control_store": "{changes}"}}}}',
        "AIRFLOW_CONN_TIDEMARK_MANY": f'{{"conn_type": "tidemark", "extra": {{"control_store": "{many.url}"}}}}',
        "AIRFLOW_CONN_SHOP_DATABASE": source,
        "AIRFLOW_CONN_TIDEMARK_NEW": f'{{"conn_type": "tidemark", "extra": {{"control_store": "sqlite:///{root}/no.db"}}}}',
    }
    with api_server(root, environment) as running:
        yield running
    with create_session() as session:
        session.query(DagModel).filter_by(dag_id=DAG).delete()


def windows_of_a_dag(made: Monitored, count: int) -> None:
    made.store.migrate()
    made._clock(hours=90)
    made._stream("taken")
    for number in range(count):
        made._clock(hours=89 - number)
        made._commit("taken", times=1)
        made._consume(f"run_{number}", "taken")


@pytest.fixture(scope="module")
def chrome() -> Iterator[Chrome]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def page(chrome: Chrome, server: ApiServer) -> Page:
    """Logged in as somebody who may only read."""
    found = Page(chrome, server)
    found.log_in("viewer")
    return found


def test_airflows_menu_leads_to_the_page_and_it_shows_every_stream(page: Page) -> None:
    page.one("[data-testid=nav-sidebar], nav")
    browse = "//button[contains(., 'Browse')]"
    page.until(lambda: page.chrome.find_elements(By.XPATH, browse)).__getitem__(0).click()  # type: ignore[attr-defined]
    entry = "//*[self::a or @role='menuitem'][normalize-space()='Tidemark']"
    page.until(lambda: page.chrome.find_elements(By.XPATH, entry)).__getitem__(0).click()  # type: ignore[attr-defined]
    page.enter()
    page.until(lambda: "stream stock" in page.reads(".needs").replace("\n", " "))  # what needs somebody comes first
    assert page.reads("#views [aria-current=page]") == "Overview"
    page.press("#view-streams", Keys.ENTER)
    page.shows("clicks", "customers", "order_changes", "payments", "returns", "stock")
    page.until(lambda: "5 versions" in page.row("order_changes"))
    for said in ("shop.order_changes", "24", DAG, "manual__open", "UTC", "ago"):
        assert said in page.row("order_changes")
    page.until(lambda: "up to date" in page.row("payments"))  # each log has its turn
    page.until(lambda: "No table exists" in page.row("returns"))
    page.until(lambda: "stale" in page.row("stock"))
    assert "failed 3 times in a row" in page.row("stock")
    page.picture("streams")


def test_the_page_can_be_read_by_everybody(page: Page) -> None:
    page.open_inside()
    page.until(lambda: "up to date" in page.row("payments"))
    assert page.barriers() == []
    for question in ("", "?stream=order_changes", "?view=replications", "?replication=shop", "?view=objects"):
        page.open(question)
        page.one("table" if question else ".needs")
        assert page.barriers() == []


def test_the_search_has_a_key_and_narrows_the_list(page: Page) -> None:
    page.open()
    page.shows("clicks", "customers", "order_changes", "payments", "returns", "stock")
    page.click("#refreshed")  # somewhere in the frame
    ActionChains(page.chrome).send_keys("/").perform()
    page.until(lambda: page.chrome.switch_to.active_element.get_attribute("id") == "search")
    page.press("#search", "PAY")
    page.shows("payments")
    page.press("#search", "xyz")
    page.until(lambda: "No stream fits" in page.reads("#empty"))
    page.click("#empty button")
    page.shows("clicks", "customers", "order_changes", "payments", "returns", "stock")
    page.click("#held")
    page.shows("order_changes")


def test_the_list_is_sorted_by_its_headings(page: Page) -> None:
    page.open()
    page.click("#by-offset")
    page.until(lambda: page.streams()[-1:] == ["order_changes"])
    page.press("#by-offset", Keys.ENTER)
    page.until(lambda: page.streams()[:2] == ["order_changes", "payments"])
    assert page.reads("th[aria-sort=descending]").startswith("Offset")


def test_many_streams_come_in_pages(page: Page) -> None:
    page.open(f"{STREAMS}&connection=tidemark_many")
    page.until(lambda: len(page.streams()) == 50)
    assert "1–50 of 120 streams" in page.text
    page.until(lambda: [page.chrome.find_element(By.XPATH, "//button[.='Next']").click()])
    page.until(lambda: page.streams()[:1] == ["bulk_0050"])
    page.until(lambda: "51–100 of 120 streams" in page.text)


def test_an_empty_store_says_what_to_do_next(page: Page) -> None:
    page.open()
    page.press("#connection", "tidemark_new")
    page.until(lambda: "No stream yet" in page.text)
    assert "CreateStreamOperator" in page.text


def test_a_streams_details_have_its_history_window_and_targets(page: Page) -> None:
    page.open_inside()
    page.press("tr[data-stream=order_changes] th a", Keys.ENTER)
    assert page.one("#plot svg").accessible_name == "Offset over commits of the table"
    assert page.reads("#plot .legend").split("\n") == ["Offset", "Newest commit of the table that was seen"]
    assert len(page.chrome.find_elements(By.CSS_SELECTOR, "#moves tbody tr")) == 13
    for said in ("Open window", "order_changes: (24, 26]", "not yet", "target0", "ana", "created", "worker-3:417"):
        assert said in page.text
    page.picture("stream")
    page.click("#back")
    page.one("tr[data-stream=payments]")


def test_the_offset_of_a_stream_is_walked_by_keyboard_over_the_commits_of_its_table(page: Page) -> None:
    chart = "#chart-versions-offset"
    page.open("?stream=order_changes")
    page.until(lambda: (page.label("#mark-chart-versions-offset-1-now") or "").endswith("that was seen: 29"))
    assert len(page.chrome.find_elements(By.CSS_SELECTOR, f"{chart} path.line")) == 2
    assert (page.label(f"{chart} .mark[tabindex='0']") or "").endswith("Offset: 24")
    focused = "return getComputedStyle(document.activeElement.querySelector('.series')).strokeWidth"
    page.press(f"{chart} .mark[tabindex='0']", Keys.ARROW_DOWN)
    page.until(lambda: page.reads(f"{chart}-said").endswith("that was seen: 29"))
    assert page.chrome.execute_script(focused) == "2.5px"
    for key, said in ((Keys.ARROW_UP, "Offset: 24"), (Keys.HOME, "Offset: 0"), (Keys.ARROW_RIGHT, "Offset: 1")):
        ActionChains(page.chrome).send_keys(key).perform()
        page.until(lambda said=said: page.reads(f"{chart}-said").endswith(said))
    assert page.chrome.switch_to.active_element.get_attribute("aria-label") == page.reads(f"{chart}-said")
    page.press(f"{chart}-table summary", Keys.ENTER)
    newest = f"{chart}-table tbody tr"
    page.until(lambda: page.reads(newest).endswith("24 29"))
    assert page.barriers() == []


def test_an_open_table_keeps_focus_and_place_when_a_stream_is_drawn_again_and_the_same_answer_draws_nothing(
    page: Page,
) -> None:
    page.open("?stream=order_changes")
    page.is_answered(
        "Object.assign(found, { now: '2026-11-30T12:00:00Z', looked_at: '2026-11-30T12:00:00Z' });"
        "Object.assign(found.stream.lag, { lag_seconds: 90, hours_left: 5 }); found.stream.comment = window.said"
    )
    page.chrome.execute_script("window.said = 'said before'")
    page.refreshes()
    page.until(lambda: "said before" in page.text)
    page.press("#chart-versions-offset-table summary", Keys.ENTER)
    table = "#chart-versions-offset-table .scroll"
    page.one(f"{table} table")
    page.chrome.execute_script(
        "document.getElementById('view').style.width = '15rem';"
        "const table = document.querySelector(arguments[0]); table.focus(); table.scrollLeft = 40", table
    )  # fmt: skip
    places = "return [...document.querySelectorAll('#view .scroll')].map((one) => [one.ariaLabel, one.scrollLeft])"
    before = page.chrome.execute_script(places)
    assert [place for _, place in before if place] == [40]
    drawn = page.one("#plot")
    for said in ("said before", "said then"):
        page.chrome.execute_script("window.said = arguments[0]; refreshed.textContent = ''", said)
        page.refreshes()
        page.until(lambda: page.reads("#refreshed") != "")
        assert (page.one("#plot") == drawn) is (said == "said before")
    assert "said then" in page.text
    assert page.reads(f"{table} tbody tr").endswith("24 29")
    assert page.chrome.execute_script(places) == before
    assert page.chrome.execute_script("return document.activeElement === document.querySelector(arguments[0])", table)


def test_a_history_is_walked_by_keyboard_and_has_tables(page: Page) -> None:
    page.open("?view=objects")
    page.press("tr[data-any-object='stream order_changes'] a[aria-label^=History]", Keys.ENTER)
    chart = "#chart-versions-offset"
    seen = f"{chart} > svg > g:last-of-type > .mark:last-child"  # by a look that the list of objects has begun
    page.until(lambda: (page.label(seen) or "").endswith("that was seen: 29"))
    newest = page.label(f"{chart} .mark[tabindex='0']")
    assert newest is not None
    assert newest.endswith("Offset: 24")
    assert page.one(f"{chart} svg").accessible_name == "Offset over commits of the table"
    axis = [one.text for one in page.chrome.find_elements(By.CSS_SELECTOR, f"{chart} .axes text")]
    assert {"0", "10", "20", "30"} <= set(axis)
    page.press(f"{chart} .mark[tabindex='0']", Keys.ARROW_LEFT)
    page.until(lambda: page.reads(f"{chart}-said").endswith("Offset: 24"))
    ActionChains(page.chrome).send_keys(Keys.ARROW_LEFT).perform()
    page.until(lambda: page.reads(f"{chart}-said").endswith("Offset: 21"))
    ActionChains(page.chrome).send_keys(Keys.HOME).perform()
    page.until(lambda: page.reads(f"{chart}-said").endswith("Offset: 0"))
    assert page.chrome.switch_to.active_element.get_attribute("aria-label") == page.reads(f"{chart}-said")
    page.press(f"{chart}-table summary", Keys.ENTER)
    page.until(lambda: len(page.chrome.find_elements(By.CSS_SELECTOR, f"{chart}-table tbody tr")) == 14)
    assert "24" in page.reads(f"{chart}-table tbody tr")
    assert page.barriers() == []


def test_a_tree_of_partitions_says_the_state_of_each(page: Page) -> None:
    page.open_inside("?history=s/mirror&kind=consumer_group&connection=tidemark_changes")
    tree = "#chart-partitions-tree"
    page.one(f"{tree} .mark")
    lives = [
        one.get_attribute("aria-label") or "" for one in page.chrome.find_elements(By.CSS_SELECTOR, f"{tree} .mark")
    ]
    assert len(lives) == 5
    assert [one for one in lives if "keys 0 to 32,767, finished, 75 rows" in one and "2 children" in one]
    assert "failed" in page.reads(f"{tree} .legend")
    for theme in ("dark", "light"):
        page.wears(theme)
        page.one(f"{tree} .mark")
        assert page.barriers() == []
    page.chrome.execute_script("scrollTo(0, 0)")
    page.picture("history", height=760)


def test_partitions_of_before_are_reached_by_keyboard_and_all_are_counted(page: Page) -> None:
    lives = "#chart-partitions-tree .mark"
    page.open("?history=s&kind=change_stream&connection=tidemark_changes")
    pages = "nav[aria-label^='Pages: Partitions']"
    page.until(lambda: "200 of 255 points" in page.reads(pages))
    assert len(page.chrome.find_elements(By.CSS_SELECTOR, lives)) == 200
    page.press("#older-partitions", Keys.ENTER)
    page.until(lambda: "55 of 255 points" in page.reads(pages))
    assert (page.label(lives) or "").startswith("Partition old-0,")
    assert not page.one("#older-partitions").is_enabled()
    assert page.barriers() == []
    page.press("#newer-partitions", Keys.ENTER)
    page.until(lambda: "200 of 255 points" in page.reads(pages))
    assert not page.one("#newer-partitions").is_enabled()


def test_the_tokens_of_channels_are_drawn_after_a_look_at_the_lake(page: Page) -> None:
    page.open("?history=shop.landing&kind=landing_table&connection=tidemark_changes")
    newest = "#chart-channel_0-tokens .mark[tabindex='0']"
    page.until(lambda: (page.label(newest) or "").endswith("Offset token as a number: 14"))
    assert "Logs were read" in page.reads("#looked")
    page.press("#part-channel_1-table summary", Keys.ENTER)
    page.until(lambda: "file_2" in page.reads("#part-channel_1-table tbody tr"))
    assert page.chrome.find_elements(By.CSS_SELECTOR, "main img") == []
    assert page.barriers() == []


def test_a_link_leads_to_a_window_and_the_window_to_its_run(page: Page) -> None:
    page.open_inside(f"?dag_id={DAG}&run_id=payments__0&task_id=deliver_payments")  # as of a task that names no stream
    page.until(lambda: "payments" in page.reads("#where"))
    assert "the requested window" in page.reads("tr.asked")
    page.click("tr.asked a.out")
    page.chrome.switch_to.default_content()
    page.until(lambda: page.chrome.current_url == f"{page.url}/dags/{DAG}/runs/payments__0")


def test_what_changes_is_seen_without_a_reload(page: Page, monitored: Monitored) -> None:
    page.open(f"{STREAMS}&search=payments")
    page.until(lambda: "up to date" in page.row("payments"))
    page.press("tr[data-stream=payments] th a", "")
    monitored.tables["payments"].append()
    page.until(lambda: "1 version" in page.row("payments"), patience=3 * REFRESH)
    page.until(lambda: page.chrome.switch_to.active_element.text == "payments")  # drawn anew, the focus stays


def test_airflows_address_has_what_is_looked_at_and_a_reload_keeps_it(page: Page) -> None:
    page.open_inside()
    page.press("#search", "PAY")
    page.shows("payments")
    page.until(lambda: "search=PAY" in page.chrome.current_url)
    page.chrome.refresh()
    page.enter()
    page.shows("payments")
    assert page.one("#search").get_attribute("value") == "PAY"
    for link, there in (("#view-streams", "streams"), ("#view-objects", "objects"), ("#home", "overview")):
        page.press(link, Keys.ENTER)
        page.until(lambda there=there: page.chrome.current_url.endswith(f"?view={there}"))


def test_the_page_is_dark_where_airflow_is(page: Page) -> None:
    page.open_inside()
    colour = "return getComputedStyle(document.body).backgroundColor"
    page.one("tr[data-stream]")
    seen = {}
    for theme in ("dark", "light"):
        page.wears(theme)
        seen[theme] = page.chrome.execute_script(colour)
    assert seen == {"dark": "rgb(20, 23, 26)", "light": "rgb(255, 255, 255)"}


def test_replications_are_a_view_of_their_own(page: Page) -> None:
    page.open()
    page.press("#view-replications", Keys.ENTER)
    shop = "tr[data-replication=shop]"
    page.until(lambda: "shop_database" in page.reads(shop))
    for said in ("running", "1 active", "2 of 7", "48.2 MB", "shop.stock is to be backfilled", "ago"):
        assert said in page.reads(shop)
    assert "paused" in page.reads("tr[data-replication=crm]")
    assert page.reads("#views [aria-current=page]") == "Replications"
    page.press(f"{shop} th a", Keys.ENTER)
    page.until(lambda: page.objects() == list(WORST_FIRST))
    page.click("#back")
    page.one(shop)
    page.press("#view-streams", Keys.ENTER)
    page.one("tr[data-stream=payments]")
    assert page.reads("#views [aria-current=page]") == "Streams"


def test_a_replication_shows_its_alerts_its_objects_and_how_far_a_backfill_is(
    page: Page, replicated: MonitoredReplications
) -> None:
    page.open_inside("?replication=shop")
    page.wears("light")
    page.until(lambda: page.objects() == list(WORST_FIRST))
    assert page.progress() == ("progressbar", "Backfill of shop.customers", "43")
    assert "43 %, 51,600 of about 120,000 rows" in page.reads("tr[data-object='shop.customers']")
    assert "a backfill\ncolumn weight may have any value" in page.reads("tr[data-object='shop.stock']")
    assert "behind" in page.reads("tr[data-object='shop.items']")
    assert "shop.payments: the source cannot be reached" in page.reads(".alerts")
    assert "the CRM moves" not in page.reads("#moves")
    assert "pending → active" in page.reads("#moves")
    assert "BackfillNeeded" in page.reads("#errors")
    assert "it went away" in page.reads("#errors")
    page.picture("replications", height=1015)
    page.wears("dark")
    assert page.barriers() == []
    replicated.active("shop.customers", done=90_000, expected=120_000)
    page.until(lambda: page.progress()[2] == "75", patience=3 * REFRESH)


def test_the_objects_of_a_replication_can_be_searched(page: Page) -> None:
    page.open("?replication=shop")
    page.press("#search", "ITEMS")
    page.until(lambda: page.objects() == ["shop.items"])
    page.press("#search", "xyz")
    page.until(lambda: "No object fits" in page.reads("#empty"))
    page.click("#empty button")
    page.until(lambda: page.objects() == list(WORST_FIRST))


def test_all_errors_of_a_replication_are_reached_by_keyboard(page: Page, replicated: MonitoredReplications) -> None:
    replicated.errors("crm", count=25)
    page.open("?replication=crm")
    page.until(lambda: page.reads("#errors caption") == "The latest 20 errors. All of them")
    assert page.barriers() == []
    page.press("#older-errors", Keys.ENTER)
    page.until(lambda: page.reads("#history").count("reason ") == 25)
    assert "reason 24" in page.reads("#history tbody tr:first-child")
    assert page.barriers() == []


def test_a_replication_that_is_not_there_is_said_with_a_way_to_the_others(page: Page) -> None:
    page.open("?replication=nobody")
    page.until(lambda: "Replication 'nobody' does not exist" in page.reads("#trouble"))
    page.click("#view a")
    page.one("tr[data-replication=crm]")


@pytest.mark.parametrize(
    ("asked", "said", "way"),
    [
        (f"{STREAMS}&connection=nobody", "not among those of [tidemark] monitor_conn_ids", "#without-connection"),
        (f"{STREAMS}&offset=99999999", "offset: Input should be less than or equal to 10000000.", "#view a"),
    ],
)
def test_an_address_that_is_refused_says_why_and_has_a_way_out(page: Page, asked: str, said: str, way: str) -> None:
    page.open(asked)
    page.until(lambda: said in page.reads("#trouble"))
    page.click(way)
    page.one("tr[data-stream=payments]")


def test_where_nothing_is_replicated_the_streams_are_all_there_is(page: Page) -> None:
    page.open(f"{STREAMS}&connection=tidemark_many")
    page.until(lambda: len(page.streams()) == 50)
    assert not page.chrome.find_elements(By.CSS_SELECTOR, "#view-replications")
    page.open("?view=replications&connection=tidemark_many")
    page.until(lambda: "No replication yet" in page.reads("#empty"))
    assert "CreateReplicationOperator" in page.text


def test_objects_of_every_kind_are_a_view_of_their_own_with_the_worst_first(page: Page) -> None:
    page.open_inside()
    page.press("#view-objects", Keys.ENTER)
    page.until(lambda: len(page.every_object()) == 15)
    page.until(lambda: {"stream returns", "stream stock"} < set(page.every_object()[:4]))  # as looks have found
    assert page.every_object()[:2] == ["replicated_table shop/shop.payments", "stream clicks"]
    assert page.reads("#views [aria-current=page]") == "Objects"
    assert page.reads("th[aria-sort=ascending]").startswith("State")
    page.until(lambda: "5 versions" in page.reads("tr[data-any-object='stream order_changes']"))
    payments = page.reads("tr[data-any-object='stream payments']")
    assert "up to date" in payments or "1 version\n" in f"{payments}\n"  # another test may have written to it
    row = page.reads("tr[data-any-object='replicated_table shop/shop.payments']")
    for said in ("failed", "it went away", DAG, "ago"):
        assert said in row
    assert "48.2 MB" in page.reads("tr[data-any-object='replication shop']")
    page.picture("objects")
    page.wears("dark")
    assert page.barriers() == []
    page.wears("light")


def test_an_object_leads_to_its_own_view(page: Page) -> None:
    page.open("?view=objects")
    page.press("tr[data-any-object='stream order_changes'] th a", Keys.ENTER)
    page.one("#plot")
    page.open("?view=objects")
    page.press("tr[data-any-object='replicated_table shop/shop.items'] th a", Keys.ENTER)
    page.until(lambda: page.objects() == ["shop.items"])


def test_objects_are_narrowed_sorted_and_searched(page: Page) -> None:
    page.open("?view=objects")
    page.click("#problems")
    page.until(lambda: len(page.every_object()) == 7)
    page.click("#problems")
    page.press("#kind", "replication (2)")
    page.until(lambda: page.every_object() == ["replication crm", "replication shop"])
    page.click("#by-name")
    page.click("#by-name")
    page.until(lambda: page.every_object() == ["replication shop", "replication crm"])
    page.press("#search", "xyz")
    page.until(lambda: "No object fits" in page.reads("#empty"))
    page.click("#empty button")
    page.until(lambda: len(page.every_object()) == 15)
    page.open("?view=objects&connection=tidemark_new")
    page.until(lambda: "No object yet" in page.text)


def test_lineage_is_a_graph_that_is_walked_by_keyboard_and_mouse(page: Page) -> None:
    page.open_inside()
    page.press("#view-lineage", Keys.ENTER)
    stream = "a[data-node='stream order_changes']"
    page.until(lambda: "lag 5 versions" in (page.label(stream) or ""))
    assert page.reads("#views [aria-current=page]") == "Lineage"
    page.picture("lineage")
    page.wears("dark")
    assert page.barriers() == []
    page.wears("light")
    page.press("a[data-node='table shop.order_changes']", Keys.ARROW_RIGHT)
    focused = "return document.activeElement.dataset.node"
    page.until(lambda: page.chrome.execute_script(focused) == "stream order_changes")
    page.press(stream, Keys.ARROW_RIGHT)
    target = str(page.until(lambda: page.chrome.execute_script(f"{focused}.replace(/.*[/]/, '')")))
    assert target in ("target0", "target1")
    page.press(stream, Keys.ENTER)
    page.until(lambda: "order_changes" in page.reads("#centre h2"))
    page.click("#edges summary")
    edge = page.reads("tr[data-edge='table shop.order_changes → stream order_changes']")
    assert "5 versions" in edge
    assert DAG in page.reads("tr[data-edge^='stream order_changes → ']")
    page.until(
        lambda: [page.chrome.find_element(By.CSS_SELECTOR, "a[data-node='table shop.order_changes'] rect").click()]
    )
    page.until(lambda: page.reads("#centre h2").endswith("shop.order_changes"))
    page.press("#depth", Keys.HOME)
    page.until(lambda: len(page.chrome.find_elements(By.CSS_SELECTOR, "a[data-node]")) == 2)
    page.click("#all")
    page.until(lambda: page.chrome.find_elements(By.CSS_SELECTOR, "a[data-node='replication shop']"))
    page.open("?view=lineage&object=stream/nobody")
    page.until(lambda: "no stream in the lineage" in page.reads("#trouble"))
    page.click("#view a")
    page.one(stream)
    page.open("?view=lineage&connection=tidemark_new")
    page.until(lambda: "No object yet" in page.text)


def test_what_is_typed_into_the_lineage_stays_while_lags_and_ages_go_on(page: Page) -> None:
    page.open("?view=lineage")
    page.until(lambda: "Logs were read" in page.reads("#age"))
    page.press("#object", "stream orde")
    page.is_answered(
        "for (const edge of found.edges) Object.assign(edge, { looked: true, lag_amount: 77, lag_unit: 'versions' });"
        "found.looked_at = window.read"
    )
    for read in ("2026-01-01 00:00:00 UTC", "2026-01-02 00:00:00 UTC"):  # the second answer has no other lag
        page.chrome.execute_script("window.read = arguments[0]", read.replace(" UTC", "Z").replace(" ", "T"))
        page.refreshes()
        page.until(lambda read=read: read in page.reads("#age"))
        assert "77 versions" in page.chrome.execute_script("return document.getElementById('lineage').textContent")
        assert page.one("#object").get_attribute("value") == "stream orde"
        assert page.chrome.switch_to.active_element.get_attribute("id") == "object"


def test_the_lineage_of_another_connection_has_no_centre_of_the_one_before(page: Page) -> None:
    page.open("?view=lineage&object=stream/order_changes")
    page.until(lambda: page.one("#object").get_attribute("value") == "stream order_changes")
    page.press("#connection", "tidemark_many")
    page.until(lambda: page.chrome.find_elements(By.CSS_SELECTOR, "a[data-node='stream bulk_0000']"))
    assert page.one("#object").get_attribute("value") == ""
    assert not page.one("#trouble").is_displayed()


def test_the_way_back_leads_along_the_lineage_inside_of_airflow(page: Page) -> None:
    page.open_inside("?view=lineage")
    middle = "#centre h2"
    page.press("a[data-node='stream order_changes']", Keys.ENTER)
    page.until(lambda: "stream order_changes" in page.reads(middle))
    page.press("a[data-node='table shop.order_changes']", Keys.ENTER)
    page.until(lambda: "table shop.order_changes" in page.reads(middle))
    page.chrome.back()
    page.enter()
    page.until(lambda: "stream order_changes" in page.reads(middle))
    page.until(lambda: "object=stream%2F" in page.chrome.current_url)
    page.chrome.back()
    page.enter()
    page.until(lambda: not page.one("#all").is_displayed())
    assert page.chrome.find_elements(By.CSS_SELECTOR, "a[data-node='replication shop']")
    assert "object=" not in page.chrome.current_url


@pytest.fixture
def tabbed(monitored: Monitored, server: ApiServer) -> str:
    """The id of a run of a DAG that Airflow knows. It owns a stream, and its task took a window of another one."""
    from airflow.providers.standard.operators.empty import EmptyOperator
    from airflow.sdk import DAG as Dag

    with Dag("tabbed", schedule=None) as dag:
        EmptyOperator(task_id="deliver")
    run = str(run_registered(dag).run_id)
    owned = (objects.c.kind == "stream") & (objects.c.name == "returns")
    taken = {"dag_id": "tabbed", "run_id": run, "task_id": "deliver"}

    def hand_over(connection: sa.Connection) -> None:
        connection.execute(objects.update().where(owned).values(owner_dag="tabbed"))
        connection.execute(transactions.update().where(transactions.c.run_id == "payments__1").values(taken))

    monitored.store.write(hand_over)
    return run


def test_a_dag_a_run_and_a_task_have_a_tab(page: Page, tabbed: str) -> None:
    run = f"{page.url}/dags/tabbed/runs/{quote(tabbed, safe='')}"
    page.chrome.get(f"{page.url}/dags/tabbed")
    tab = "//a[normalize-space()='Tidemark' and contains(@href, 'tidemark-dag')]"
    page.until(lambda: [page.chrome.find_element(By.XPATH, tab).click()])
    page.enter()
    page.one("#owned tr[data-object-of-run='stream returns']")
    assert not page.chrome.find_elements(By.CSS_SELECTOR, "#touched")
    for address in (f"{run}/plugin/tidemark-dag-run", f"{run}/tasks/deliver/plugin/tidemark-task-instance"):
        page.chrome.switch_to.default_content()
        page.chrome.get(address)
        page.enter()
        page.until(lambda: "committed" in page.reads("#windows"))
        page.one("#touched tr[data-object-of-run='stream payments']")
        assert "target0" in page.reads("#evidence")
        assert "as inserted rows alone, written to 2 targets" in page.reads("#touched")
        page.until(lambda: NEXT_WINDOW.search(page.reads("#next tr[data-next='payments']")))
    page.one("#windows tr.asked")
    page.picture("tab")
    assert page.barriers() == []
    page.press("#touched a[aria-label='Lineage of stream payments']", Keys.ENTER)
    page.until(lambda: "payments" in page.reads("#centre h2"))


def test_a_tab_has_captures_and_rows_of_channels_that_its_tasks_brought(page: Page) -> None:
    page.open(f"?view=run&dag_id={DAG}&run_id=hourly__1&connection=tidemark_changes")
    page.until(lambda: "4 batches up to number 3, 110 rows" in page.reads("#touched"))
    page.one("#touched tr[data-object-of-run='change_stream s']")
    page.one("#owned tr[data-object-of-run='change_stream s']")
    page.open(f"?view=run&dag_id={DAG}&run_id=scheduled__1&task_id=load&connection=tidemark_changes")
    page.until(lambda: "1,200 rows ingested, 3 did not fit" in page.reads("#touched"))
    page.one("#touched tr[data-object-of-run='landing_table shop.landing']")
    assert page.barriers() == []


def test_older_windows_of_a_dag_are_reached_by_keyboard(page: Page) -> None:
    page.open(f"?view=run&dag_id={DAG}&connection=tidemark_taken")
    page.until(lambda: page.reads("#windows caption") == "Windows of the newest 50 transactions")
    page.one("#owned")
    page.press("#more-transactions", Keys.ENTER)
    page.until(lambda: len(page.chrome.find_elements(By.CSS_SELECTOR, "#windows tbody tr")) == 10)
    assert page.chrome.find_elements(By.CSS_SELECTOR, "#owned, #next") == []
    assert not page.one("#more-transactions").is_enabled()
    assert page.barriers() == []
    page.press("#first-transactions", Keys.ENTER)
    page.until(lambda: page.reads("#windows caption") == "Windows of the newest 50 transactions")


def test_the_page_breaks_none_of_its_own_rules(page: Page) -> None:
    page.chrome.get_log("browser")
    views = (("?stream=order_changes", "#plot"), ("?replication=shop", "progress"), ("?view=objects", "#by-state"))
    views += (("?view=lineage", "#lineage"),)
    for question, there in views:
        page.open_inside(question)
        page.one(there)
    said = [entry["message"] for entry in page.chrome.get_log("browser") if "/tidemark/" in entry["message"]]
    assert [message for message in said if "can escape its sandboxing" not in message] == []  # Airflow's frame


def test_a_source_is_shown_with_what_cannot_be_replicated_to_those_who_may_read_its_connection(page: Page) -> None:
    page.open("?view=replications")
    page.press("#source", "shop_database")
    page.click("#discover")
    page.until(lambda: "You may not see this source" in page.reads("#trouble"))
    page.log_in("admin")
    try:
        page.open("?replication=shop")
        page.click("#to-source")
        page.until(lambda: page.tables() == ["public.log", "public.orders"])
        assert "REPLICA IDENTITY FULL" in page.reads("tr[data-table='public.log']")
        assert "1 of 2 can be replicated" in page.reads("#facts")
        page.click("tr[data-table='public.orders'] summary")
        page.until(lambda: "note text → string, STRING" in page.reads("tr[data-table='public.orders']"))
        assert page.barriers() == []
        page.press("#search", "ORDERS")
        page.until(lambda: page.tables() == ["public.orders"])
        page.open("?source=never_was")
        page.until(lambda: "never_was does not exist" in page.reads("#trouble"))
        page.click("#view a")
        page.one("tr[data-replication=crm]")
    finally:
        page.log_in("viewer")


def test_a_session_that_ends_is_said(page: Page) -> None:
    page.open()
    page.one("tr[data-stream]")
    page.chrome.delete_all_cookies()
    page.until(lambda: "You are logged out" in page.text, patience=3 * REFRESH)
    assert page.streams() == []
    page.chrome.switch_to.default_content()
    page.chrome.get(f"{page.url}/tidemark/")
    assert "You are not logged in" in page.text


def test_somebody_without_rights_is_told_so(page: Page) -> None:
    page.log_in("guest")
    page.chrome.get(f"{page.url}/tidemark/")
    assert "you may not see streams" in page.text
    assert "order_changes" not in page.chrome.page_source
