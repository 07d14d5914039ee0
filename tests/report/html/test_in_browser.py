"""The page in a real browser, which is told to report whatever the page wants from anywhere."""

import io
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from tests.report.html.contrast import contrast

_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
Scheme = Literal["light", "dark"]
Screens = pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("page", 1280, "light"),
        ("page", 390, "dark"),
        ("plain_page", 390, "light"),
        ("large_page", 1280, "dark"),
        ("tiers_page", 390, "light"),
        ("compare_page", 390, "dark"),
        ("tiers_page", 1280, "dark"),
    ],
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Of this module alone: while it is open, its event loop keeps any other from running in this thread."""
    path = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if path is None:
        pytest.skip("NOT RUN: no Chromium is installed; fix: as root, apt-get install chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=list(_FLAGS))
        yield started
        started.close()


def written(folder: Path, text: str) -> Path:
    path = folder / "report.html"
    path.write_text(text, "utf-8")
    return path


@contextmanager
def opened(browser: Browser, path: Path, width: int = 1280, scheme: Scheme = "light") -> Iterator[Page]:
    """The page offline. On leaving: nothing but itself was asked for, and the browser had nothing to complain about."""
    with browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True) as context:
        page = context.new_page()
        page.set_default_timeout(90_000)  # of milliseconds; a machine that is busy takes its time
        requests: list[str] = []
        complaints: list[str] = []
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(path.as_uri())
        yield page
        assert complaints == []
        assert [url for url in requests if not url.startswith("data:")] == [path.as_uri()]


_CUT_OFF = """[...document.querySelectorAll('figure svg text')].filter(text => {
  const word = text.getBoundingClientRect(), card = text.closest('figure').getBoundingClientRect();
  return word.left < card.left || word.right > card.right || word.top < card.top || word.bottom > card.bottom;
}).map(text => text.textContent)"""
_MEETING = """[...document.querySelectorAll('figure svg')].flatMap(svg => {
  const words = [...svg.querySelectorAll('text')].map(text => [text.textContent, text.getBoundingClientRect()]);
  return words.flatMap(([one, a], place) => words.slice(place + 1).filter(([_, b]) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4
  ).map(([other]) => `${one} / ${other}`));
})"""


_WIDER_THAN_ITS_FRAME = """[...document.querySelectorAll('section > .table')].filter(
  frame => frame.scrollWidth > frame.clientWidth).map(frame => frame.ariaLabel)"""


def test_no_table_of_tiers_scrolls_sideways_in_a_usual_window(
    browser: Browser, tiers_page: str, tmp_path: Path
) -> None:
    with opened(browser, written(tmp_path, tiers_page)) as page:
        assert page.locator("section > .table").count() >= 5
        assert page.evaluate(_WIDER_THAN_ITS_FRAME) == []


def assert_in_place(page: Page, width: int) -> None:
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for drawing in page.locator("figure svg").all():
        box = drawing.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert min(box["width"], box["height"]) >= 90
    assert page.evaluate(_CUT_OFF) == []
    assert page.evaluate(_MEETING) == []


_WORDS_AND_GROUNDS = """[...document.querySelectorAll('body *')].filter(element =>
  [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim()) &&
  !['title', 'style'].includes(element.tagName.toLowerCase()) && !element.closest('.on-tier')
).map(element => {
  let ground = element;
  while (ground && getComputedStyle(ground).backgroundColor === 'rgba(0, 0, 0, 0)') ground = ground.parentElement;
  const style = getComputedStyle(element), inside = element.closest('svg');
  return [element.textContent.slice(0, 40), inside ? style.fill : style.color, getComputedStyle(ground).backgroundColor];
})"""


def _hex(colour: str) -> str:
    channels = colour.removeprefix("rgb(").removesuffix(")").split(",")
    return "#" + "".join(f"{int(channel):02x}" for channel in channels)


def assert_readable(page: Page) -> None:
    words = page.evaluate(_WORDS_AND_GROUNDS)
    assert len(words) > 100
    dim = [(text, ink, ground) for text, ink, ground in words if contrast(_hex(ink), _hex(ground)) < 4.5]
    assert dim == []


def assert_every_plot_shows_something(page: Page) -> None:
    whole = Image.open(io.BytesIO(page.screenshot(full_page=True))).convert("RGB")
    for drawing in page.locator("figure svg").all():
        box = drawing.bounding_box()
        assert box is not None
        ends = box["x"] + box["width"], box["y"] + box["height"]
        assert_drawn(whole.crop((round(box["x"]), round(box["y"]), round(ends[0]), round(ends[1]))))


def assert_drawn(picture: Image.Image) -> None:
    colours = sorted(picture.getcolors(2**24) or [], reverse=True)
    assert len(colours) > 30
    assert colours[0][0] / (picture.width * picture.height) < 0.985


@Screens
def test_page_is_complete_readable_and_in_place(
    browser: Browser, tmp_path: Path, request: pytest.FixtureRequest, name: str, width: int, scheme: Scheme
) -> None:
    with opened(browser, written(tmp_path, request.getfixturevalue(name)), width, scheme) as page:
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(15, 18, 22)") is (scheme == "dark")
        assert_in_place(page, width)
        assert_readable(page)
        assert_every_plot_shows_something(page)


def test_figures_open_from_the_keyboard(browser: Browser, tmp_path: Path, page: str) -> None:
    with opened(browser, written(tmp_path, page), 390) as opened_page:
        for details in opened_page.locator("figure details").all():
            assert not details.locator("table").is_visible()
            details.locator("summary").press("Enter")
            assert details.locator("table").is_visible()
        assert opened_page.evaluate("document.documentElement.scrollWidth") <= 390


def test_paper_is_light_even_where_the_screen_is_dark(browser: Browser, tmp_path: Path, page: str) -> None:
    with opened(browser, written(tmp_path, page), scheme="dark") as opened_page:
        opened_page.emulate_media(media="print", color_scheme="dark")
        assert opened_page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert_readable(opened_page)
        assert opened_page.pdf().startswith(b"%PDF")


@pytest.mark.parametrize("addition", ["<script>alert(1)</script>", "<img src='http://127.0.0.1:9/x.png'>"])
def test_what_a_page_may_not_do_is_noticed(browser: Browser, tmp_path: Path, plain_page: str, addition: str) -> None:
    broken = written(tmp_path, plain_page.replace("<main>", f"<main>{addition}"))
    with pytest.raises(AssertionError, match="Content Security Policy"), opened(browser, broken):
        pass
