"""The report in a real browser: it draws, answers the mouse, loads nothing, and fits phones and the dark."""

import json
import os
import re
import shutil
import time

import pytest

import dsgnar as ds
from dsgnar.showing import report
from small import run_of_burgers

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
REQUIRED = "REQUIRE_BROWSER" in os.environ  # set where a missing browser is a fault (.ci/run)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

pytestmark = pytest.mark.skipif(CHROMIUM is None and not REQUIRED, reason="needs chromium (apt-get install chromium)")


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return run_of_burgers(tmp_path_factory.mktemp("runs") / "burgers")


@pytest.fixture(scope="module")
def html(directory):
    report.write([directory], directory / "report.html")
    return directory / "report.html"


class Visits:
    """Opens pages and waits until they are drawn; they must ask for nothing and complain about nothing."""

    def __init__(self, browser):
        self.browser, self.requests, self.messages, self.contexts = browser, [], [], []

    def __call__(self, path, **options):
        context = self.browser.new_context(**{"viewport": {"width": 1280, "height": 900}, "offline": True} | options)
        self.contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-drawn]", state="attached", timeout=120_000)
        return page

    def end(self):
        for context in self.contexts:
            context.close()
        assert [url for url in self.requests if not url.startswith(("file:", "data:"))] == []
        assert self.messages == []


@pytest.fixture
def visit(browser):
    visits = Visits(browser)
    yield visits
    visits.end()


@pytest.fixture(scope="module")
def desktop(browser, html):
    """A page that several tests look at, since drawing it takes seconds; they leave its charts as they are."""
    visits = Visits(browser)
    yield visits(html, color_scheme="light")
    visits.end()


def until(page, condition: str, seconds: float = 20.0) -> None:
    """Wait for a condition; the page's own policy forbids the evaluation that `wait_for_function` relies on."""
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < end, f"never came true: {condition}"
        page.wait_for_timeout(50)


def test_every_chart_is_drawn(desktop):
    page = desktop
    charts = json.loads(page.text_content("#charts"))
    assert len(charts) == page.locator(".plot").count() == 10
    for chart in charts:
        plot = page.locator(f"#{chart['id']}")
        marks = ".heatmaplayer image" if chart["traces"][0]["type"] == "heatmap" else ".scatterlayer .trace"
        assert plot.locator(marks).count() == len(chart["traces"]), chart["name"]
        box = plot.locator(".plot-container .main-svg").first.bounding_box()
        assert box and box["width"] > 200 and box["height"] > 150


def test_equations_are_typeset(desktop):
    boxes = desktop.evaluate("[...document.querySelectorAll('math')].map(m => m.getBoundingClientRect().height)")
    assert len(boxes) == 2 and min(boxes) > 15


def hovered(page, name: str) -> str:
    """What appears when the mouse rests on the middle of a chart."""
    area = page.locator(f"#chart-{name} .nsewdrag")
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2 - 3, box["y"] + box["height"] / 2)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=3)
    label = page.locator(f"#chart-{name} .hoverlayer > g").first
    label.wait_for(timeout=10_000)
    return label.text_content()


def test_hovering_shows_the_values_of_the_solution(desktop, directory):
    said = hovered(desktop, "solution-u-0").replace("−", "-")
    t, x, u = map(float, re.fullmatch(r"t = (.+?)x = (.+?)u = (.+)", said).groups())  # type: ignore[union-attr]
    assert ds.load(directory)(x=x, t=t) == pytest.approx(u, abs=2e-3)  # coordinates are shown with four digits


def test_hovering_over_curves_shows_iteration_and_value(desktop, directory):
    said = hovered(desktop, "loss").replace("−", "-")
    found = re.match(r"iteration (\d+)training : ([\d.e+-]+)", said)
    assert found, said
    loss = report.read(directory).history[int(found[1]) - 1].loss
    assert float(found[2]) == pytest.approx(loss, rel=0.01)


def test_the_course_can_be_seen_over_seconds(visit, html, directory):
    page = visit(html)
    page.get_by_text("seconds", exact=True).first.click()
    until(page, "document.getElementById('chart-loss').layout.xaxis.title.text === 'seconds'")
    x = page.evaluate("document.getElementById('chart-loss').data[0].x")
    assert x == pytest.approx([r.seconds for r in report.read(directory).history], rel=1e-4)


def test_zooming_one_curve_zooms_all(visit, html):
    page = visit(html)
    page.evaluate("Plotly.relayout('chart-loss', {'xaxis.range[0]': 2, 'xaxis.range[1]': 5})")
    until(page, "document.getElementById('chart-radius').layout.xaxis.range.join() === '2,5'")
    assert page.evaluate("document.getElementById('chart-over-time').layout.xaxis.range.join()") != "2,5"


def test_a_phone_shows_everything_without_sideways_scrolling(visit, html):
    page = visit(html, viewport={"width": 390, "height": 844}, is_mobile=True, has_touch=True, device_scale_factor=2)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    right = page.evaluate(
        "Math.max(...[...document.querySelectorAll('.plot svg')].map(e => e.getBoundingClientRect().right))"
    )
    assert right <= 390
    assert page.locator(".modebar-btn").count() == 0  # it would cover the charts


def luminance(page, name: str) -> float:
    """Relative luminance of a colour variable, as WCAG defines it."""
    script = "n => getComputedStyle(document.documentElement).getPropertyValue(n).trim()"
    rgb = [int(page.evaluate(script, name)[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(desktop, scheme):
    page = desktop
    page.emulate_media(color_scheme=scheme)
    surface = luminance(page, "--surface")
    assert (surface < 0.05) == (scheme == "dark")
    for name, least in {"--text": 7, "--muted": 4.5, "--accent": 4.5, "--series-1": 3, "--series-2": 3}.items():
        ratio = (max(surface, luminance(page, name)) + 0.05) / (min(surface, luminance(page, name)) + 0.05)
        assert ratio >= least, (name, ratio)


def test_the_page_turns_dark_while_it_is_open(desktop):
    page = desktop
    background = "getComputedStyle(document.body).backgroundColor"
    font = "document.getElementById('chart-loss').layout.font.color"
    page.emulate_media(color_scheme="light")
    until(page, f"{font} === getComputedStyle(document.documentElement).getPropertyValue('--text').trim()")
    before = page.evaluate(background), page.evaluate(font)
    page.emulate_media(color_scheme="dark")
    until(page, f"{font} !== '{before[1]}'")
    assert page.evaluate(background) != before[0]


def test_constants_of_the_method_unfold(desktop):
    table = desktop.locator("details table").first
    assert not table.is_visible()
    desktop.get_by_text("constants of the method").click()
    assert table.is_visible() and "row sketch" in table.text_content()


def test_the_history_can_be_downloaded(desktop, directory):
    page = desktop
    with page.expect_download() as download:
        page.get_by_role("link", name="history.csv").click()
    assert download.value.suggested_filename == "burgers-history.csv"
    assert download.value.path().read_bytes() == (directory / "history.csv").read_bytes()


def test_a_comparison_draws_every_run(visit, directory, tmp_path):
    shutil.copytree(directory, tmp_path / "again")
    report.write([directory, tmp_path / "again"], tmp_path / "comparison.html")
    page = visit(tmp_path / "comparison.html", viewport={"width": 390, "height": 844})
    assert page.locator("#chart-loss .scatterlayer .trace").count() == 2
    assert page.locator(".heatmaplayer image").count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
