"""The page in a real browser: it asks for nothing, fits, sorts, answers to the pointer, follows dark mode and print."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import time
from xml.etree import ElementTree

import page_cases
import pandas as pd
import pytest
from test_discovered_page import record

import gpsift as gs
from gpsift.app.html import effects, write_page
from gpsift.app.html.answer_pages import write_comparison, write_discoveries

pytestmark = pytest.mark.browser
NEEDED = "GPSIFT_REQUIRE_BROWSER"
# Where axe-core of npm lies, node_modules/axe-core/axe.min.js.
AXE = "GPSIFT_AXE"
LIGHT, DARK = "rgb(252, 252, 250)", "rgb(21, 24, 27)"


@pytest.fixture(scope="module")
def browser():
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if os.environ.get(NEEDED):
        import playwright.sync_api as driver

        assert program, f"{NEEDED} is set and there is no chromium"
    else:
        driver = pytest.importorskip("playwright.sync_api")
        if not program:
            pytest.skip("no chromium")
    with driver.sync_playwright() as play:
        # Containers run as root, where chromium starts without its sandbox only.
        found = play.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Files of analyses, written when first asked for."""
    folder, made = tmp_path_factory.mktemp("pages"), {}

    def page(name):
        if name not in made:
            made[name] = written(name, folder / f"{name}.html")
        return made[name]

    return page


def written(name, path):
    if name == "tests":
        return write_discoveries(record(), path)
    if name == "compared":
        first = page_cases.regression()
        return write_comparison(gs.compare(first, first.leading, labels=("one", "two")), path)
    return write_page(getattr(page_cases, name)(), path)


@pytest.fixture
def show(browser, pages):
    """Open a page, wait until it is drawn, and at the end refuse errors and requests."""
    contexts, troubles, requests = [], [], []

    def opened(name="regression", width=1440, scheme="light", **options):
        view = {"width": width, "height": 900}
        context = browser.new_context(viewport=view, color_scheme=scheme, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda message: message.type in ("error", "warning") and troubles.append(message.text))
        tab.on("pageerror", lambda error: troubles.append(str(error)))
        tab.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
        tab.on("request", lambda request: requests.append(request.url))
        address = pages(name).as_uri()
        tab.goto(address)
        tab.wait_for_selector("html[data-drawn=yes]")
        tab.wait_for_timeout(300)
        assert set(requests) == {address}
        requests.clear()
        return tab

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []
    assert requests == []


@pytest.mark.parametrize("name", ["regression", "classes", "noise", "hostile", "wide", "acting", "tests", "compared"])
@pytest.mark.parametrize("width", [375, 1440])
def test_page_fits_the_screen_and_loads_without_a_word(show, name, width):
    tab = show(name, width)
    assert tab.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert tab.locator(".plot canvas").count() >= 1
    for box in tab.locator(".plot").all():
        assert 200 < box.bounding_box()["width"] <= width


def column(tab, n):
    return tab.locator(f"#relevance-table tbody tr > :nth-child({n})").evaluate_all(
        "all => all.map(e => e.dataset.value)"
    )


def test_table_sorts_by_click_and_by_key(show):
    tab = show()
    head = tab.locator("#relevance-table thead th").nth(7)
    assert head.inner_text().strip() == "ARD"
    head.locator("button").click()
    values = [float(value) for value in column(tab, 8)]
    assert values == sorted(values, reverse=True)
    assert head.get_attribute("aria-sort") == "descending"
    assert tab.locator("#relevance-table th[aria-sort=none]").count() == 9
    head.locator("button").press("Enter")
    assert [float(value) for value in column(tab, 8)] == sorted(values)
    assert head.get_attribute("aria-sort") == "ascending"
    tab.locator("#relevance-table thead button").nth(1).click()
    assert column(tab, 2) == [f"x{j}" for j in range(1, 9)]


def test_a_long_table_opens_short(show):
    tab = show("wide")
    visible = "all => all.filter(row => row.offsetParent !== null).length"
    lines = tab.locator("#relevance-table tbody tr")
    assert lines.evaluate_all(visible) == 25
    tab.locator("#relevance-more").click()
    assert lines.evaluate_all(visible) == 60


def dot(tab, index):
    """Return the position of a dot of the strips on the screen."""
    place = """index => {
      const model = Bokeh.documents[0].roots()[0];
      const view = Bokeh.index.find_one(model);
      const source = [...Bokeh.documents[0].all_models].find(m => m.name === "dots").data_source;
      const box = view.canvas_view.el.getBoundingClientRect();
      return {
        x: box.x + view.frame.x_scale.compute(source.data.x[index]),
        y: box.y + view.frame.y_scale.compute(source.data.y[index]),
      };
    }"""
    tab.locator("#pointwise").scroll_into_view_if_needed()
    tab.evaluate("document.getElementById('figure-strips').scrollIntoView({behavior: 'instant', block: 'start'})")
    tab.wait_for_timeout(300)
    return tab.evaluate(place, index)


def furthest(analysis):
    """The row that is furthest right in the first strip, where no other dot is near."""
    ranking = analysis.leading
    return int(ranking.pointwise[:, ranking.order[0]].argmax())


def test_pointing_at_a_dot_shows_the_row(show):
    analysis = page_cases.regression()
    tab, row = show(), furthest(analysis)
    assert tab.locator("#tip").is_hidden()
    at = dot(tab, row)
    tab.mouse.move(at["x"] - 30, at["y"] + 3)
    tab.mouse.move(at["x"], at["y"], steps=4)
    tab.wait_for_selector("#tip:not([hidden])")
    words = tab.locator("#tip").inner_text()
    assert words.startswith(f"Row {row}\n")
    assert f"{analysis.leading.names[analysis.leading.order[0]]} = " in words
    assert "predicted" in words
    assert "observed" in words
    tab.mouse.move(3, 3)
    tab.wait_for_selector("#tip", state="hidden")


def test_choosing_a_dot_explains_its_row(show):
    tab, row = show(), furthest(page_cases.regression())
    at = dot(tab, row)
    tab.mouse.click(at["x"], at["y"])
    tab.wait_for_function("row => document.getElementById('row').value === row", arg=str(row))
    assert tab.locator("#row-answer").inner_text().startswith(f"Row {row}: predicted")


def test_a_tap_shows_and_explains_the_row(show):
    tab, row = show(width=375, has_touch=True), furthest(page_cases.regression())
    at = dot(tab, row)
    tab.touchscreen.tap(at["x"], at["y"])
    tab.wait_for_selector("#tip:not([hidden])")
    assert tab.locator("#tip").inner_text().startswith(f"Row {row}\n")
    assert tab.locator("#row-answer").inner_text().startswith(f"Row {row}: predicted")


def test_row_picker_shows_the_chosen_row(show):
    analysis = page_cases.regression()
    ranking = analysis.leading
    tab = show()
    tab.select_option("#row", "17")
    assert tab.locator("#row-answer").inner_text().startswith("Row 17: predicted")
    lines = tab.locator("#row-table tbody tr")
    order = (-ranking.pointwise[17]).argsort()
    assert lines.locator("th").all_inner_texts() == [ranking.names[j] for j in order]
    assert lines.nth(0).locator("td").nth(1).inner_text().strip() == f"{ranking.pointwise[17, order[0]]:.2f}"
    tab.locator("#row-after").click()
    assert tab.locator("#row-answer").inner_text().startswith("Row 18:")
    tab.locator("#row-before").press("Enter")
    tab.locator("#row-before").press("Enter")
    assert tab.locator("#row-answer").inner_text().startswith("Row 16:")


COLOURS = """() => {
  const models = Bokeh.documents.flatMap(each => [...each.all_models]);
  return [...new Set(models.filter(m => m.type === "LinearAxis").map(m => m.major_label_text_color))];
}"""
PAPER = "getComputedStyle(document.body).backgroundColor"


# How many points of the printed strips have the ink of light paper, and that of dark: marks of the averages.
INKS = """() => {
  const canvas = document.querySelector("canvas.printed");
  const copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
  const found = { light: 0, dark: 0 };
  for (let i = 0; i < data.length; i += 4) {
    if (data[i] === 0x1d && data[i + 1] === 0x21 && data[i + 2] === 0x26) found.light += 1;
    if (data[i] === 0xe7 && data[i + 1] === 0xe5 && data[i + 2] === 0xe0) found.dark += 1;
  }
  return found;
}"""


def becomes(tab, script, expected):
    """Colours follow a change of the system when the browser has time for them: on a busy machine, after a while."""
    deadline = time.monotonic() + 10
    while tab.evaluate(script) != expected and time.monotonic() < deadline:
        tab.wait_for_timeout(50)
    assert tab.evaluate(script) == expected


def test_dark_and_light_follow_the_system(show):
    tab = show(scheme="dark")
    assert tab.evaluate(PAPER) == DARK
    becomes(tab, COLOURS, ["#e7e5e0"])
    tab.emulate_media(color_scheme="light")
    becomes(tab, PAPER, LIGHT)
    becomes(tab, COLOURS, ["#1d2126"])


def test_print_style_is_light_without_controls(show):
    tab = show(scheme="dark")
    tab.emulate_media(media="print", color_scheme="dark")
    becomes(tab, "getComputedStyle(document.body).color", "rgb(29, 33, 38)")
    assert tab.locator("nav").is_hidden()
    assert tab.locator("#picker").is_hidden()
    becomes(tab, "document.querySelectorAll('canvas.printed').length", 3)
    becomes(tab, f"({INKS})().dark", 0)
    assert tab.evaluate(INKS)["light"] > 20
    tab.emulate_media(media="screen", color_scheme="dark")
    becomes(tab, COLOURS, ["#e7e5e0"])
    assert tab.locator("canvas.printed").first.is_hidden()


def test_printing_from_a_dark_screen_gives_light_pictures(show):
    tab = show(scheme="dark")
    assert tab.pdf(format="A4").startswith(b"%PDF")
    assert tab.locator("canvas.printed").count() == 3
    inks = tab.evaluate(INKS)
    assert inks["light"] > 20
    assert inks["dark"] == 0
    becomes(tab, COLOURS, ["#e7e5e0"])


def test_the_keyboard_reaches_headings_with_a_visible_focus(show):
    tab = show()
    tab.locator("#relevance-table thead button").nth(0).focus()
    tab.keyboard.press("Tab")
    outline = tab.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert tab.evaluate("document.activeElement.textContent") == "column"
    assert outline == "solid"


def test_narrow_screens_take_shorter_names(show):
    labels = """() => {
      const models = [...Bokeh.documents[0].all_models];
      return [...models.find(m => m.tags.some(t => t.wide)).major_label_overrides.values()];
    }"""
    assert max(map(len, show("hostile", 375).evaluate(labels))) <= 11
    assert max(map(len, show("hostile", 1440).evaluate(labels))) == 26


def test_every_picture_of_how_columns_act_is_drawn(show):
    tab = show("acting")
    drawn = tab.locator(".plot:has(canvas)").evaluate_all("all => all.map(e => e.id)")
    panels = [f"figure-acts-{place}" for place in range(1, 5)]
    assert set(drawn) == {*panels, "figure-pairs", "figure-surface", "figure-strips"}
    widths = tab.locator(".stack rect").evaluate_all("all => all.map(e => e.getBoundingClientRect().width)")
    assert min(widths) > 0


def test_pointing_at_a_curve_says_where_it_is(show):
    tab, curve = show("acting"), page_cases.acting().column_effects.effects.curves[0]
    box = tab.locator("#figure-acts-1")
    box.scroll_into_view_if_needed()
    tab.wait_for_timeout(300)
    at = box.bounding_box()
    tab.mouse.move(at["x"] + 0.5 * at["width"], at["y"] + 0.3 * at["height"])
    tab.mouse.move(at["x"] + 0.6 * at["width"], at["y"] + 0.4 * at["height"], steps=4)
    tab.wait_for_selector("#tip:not([hidden])")
    words = tab.locator("#tip").inner_text()
    assert words.startswith(f"{curve.name} = ")
    assert "beside the average" in words


def test_a_chosen_row_is_taken_apart(show):
    apart = page_cases.acting().column_effects.rows
    tab = show("acting")
    tab.select_option("#row", "7")
    order = (-abs(apart.values[7])).argsort()
    lines = tab.locator("#row-table tbody tr")
    assert lines.locator("th").all_inner_texts() == [apart.names[j] for j in order]
    first = lines.nth(0).locator("td.adds").inner_text().replace("−", "-")
    assert float(first.split("±")[0]) == pytest.approx(apart.values[7, order[0]], rel=0.01)
    assert float(first.split("±")[1]) == pytest.approx(apart.sd[7, order[0]], rel=0.06)
    assert "On average outcome is" in tab.locator("#row-answer").inner_text()


def test_curves_print_light_from_a_dark_screen(show):
    tab = show("acting", scheme="dark")
    assert tab.pdf(format="A4").startswith(b"%PDF")
    n_pictures = tab.locator(".plot").count()
    assert n_pictures >= 6
    assert tab.locator("canvas.printed").count() == n_pictures
    assert tab.evaluate(INKS)["dark"] == 0


@pytest.fixture(scope="module")
def axe():
    """The script of axe-core, which finds what a page keeps from people who hear or magnify it."""
    path = os.environ.get(AXE, "node_modules/axe-core/axe.min.js")
    if AXE not in os.environ and not os.path.exists(path):
        pytest.skip("no axe-core")
    with open(path, encoding="utf-8") as file:
        return file.read()


@pytest.mark.parametrize("name", ["regression", "classes", "acting", "tests", "compared"])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (380, "dark")])
def test_axe_finds_no_fault(show, axe, name, width, scheme):
    tab = show(name, width, scheme, bypass_csp=True)  # the policy of the page lets no other script run
    for hidden in tab.locator("button.ask").all():
        hidden.click()
    tab.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    tab.evaluate(axe)
    found = tab.evaluate("axe.run()")
    assert len(found["passes"]) > 20
    assert [(each["impact"], each["id"], each["nodes"][0]["html"]) for each in found["violations"]] == []


@pytest.mark.parametrize("width", [380, 1280])
@pytest.mark.parametrize("way", ["mouse", "finger", "keys"])
def test_a_question_mark_says_what_a_word_means(show, way, width):
    tab = show("acting", width=width, has_touch=True)
    asked = set()
    for button in tab.locator("button.ask").all():
        meaning = tab.locator(f"#{button.get_attribute('aria-controls')}")
        press = {"mouse": button.click, "finger": button.tap, "keys": lambda button=button: button.press("Enter")}[way]
        assert meaning.is_hidden()
        press()
        assert button.get_attribute("aria-expanded") == "true"
        box = meaning.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        asked.add(button.get_attribute("aria-label"))
        press()
        assert meaning.is_hidden()
        assert button.get_attribute("aria-expanded") == "false"
    assert {f"What is {word}?" for word in ("KL", "VAR", "elpd", "strength")} <= asked


def test_a_question_mark_is_reached_by_tab(show):
    tab = show()
    tab.locator("#answer button.ask").first.focus()
    tab.keyboard.press("Tab")
    tab.keyboard.press("Shift+Tab")
    assert tab.evaluate("document.activeElement.className") == "ask"
    assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    tab.keyboard.press(" ")
    assert tab.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"


def kept(tab, label):
    """Return name and bytes of the file that the button with this label downloads."""
    with tab.expect_download() as waiting:
        tab.get_by_role("button", name=label, exact=True).click()
    with open(waiting.value.path(), "rb") as file:
        return waiting.value.suggested_filename, file.read()


def test_tables_are_downloaded_with_all_digits(show):
    analysis, tab = page_cases.regression(), show()
    ranking = analysis.leading
    name, text = kept(tab, "The table relevance as CSV")
    assert name == "what-matters-for-outcome-relevance.csv"
    frame = pd.read_csv(io.BytesIO(text))
    assert list(frame["column"]) == [ranking.names[j] for j in ranking.order]
    assert list(frame["KL"]) == pytest.approx(ranking.scores[ranking.order].tolist())
    lines = json.loads(kept(tab, "The table relevance as JSON")[1])
    assert [line["KL"] for line in lines] == pytest.approx(ranking.scores[ranking.order].tolist())
    tab.locator("#sizes summary").click()
    sizes = pd.read_csv(io.BytesIO(kept(tab, "The table sizes as CSV")[1]))
    assert list(sizes["elpd"]) == pytest.approx(analysis.path.elpd.tolist())


def test_a_cell_of_several_numbers_is_downloaded_as_these(show):
    tab, ranking = show("intervals"), page_cases.intervals().leading
    (low, high), order = ranking.interval().T, ranking.order
    frame = pd.read_csv(io.BytesIO(kept(tab, "The table relevance as CSV")[1]))
    columns = frame.columns.tolist()
    assert columns.index("90 % interval high") == columns.index("90 % interval low") + 1
    assert list(frame["90 % interval low"]) == pytest.approx(low[order].tolist())
    assert list(frame["90 % interval high"]) == pytest.approx(high[order].tolist())
    found = page_cases.regression().stability.to_frame()
    ranks = json.loads(kept(show(), "The table stability as JSON")[1])
    assert [line["range worst"] for line in ranks] == found["worst_rank"].tolist()
    answers = json.loads(kept(show("tests"), "The table tests as JSON")[1])
    assert [line["matters"] for line in answers] == record().found.found[record().found.order].tolist()
    places = pd.read_csv(io.BytesIO(kept(show("compared"), "The table compared as CSV")[1]))
    assert (places["place of the first"] == places["place of the second"]).all()


def test_a_row_is_downloaded_with_all_columns_and_its_numbers(show):
    ranking = page_cases.wide().leading
    frame = pd.read_csv(io.BytesIO(kept(show("wide"), "The table row as CSV")[1]))
    assert set(frame["column"]) == set(ranking.names)
    first = dict(zip(frame["column"], frame["relevance here"], strict=True))
    assert [first[name] for name in ranking.names] == pytest.approx(ranking.pointwise[0].tolist(), rel=5e-3)
    apart = page_cases.acting().column_effects.rows
    lines = json.loads(kept(show("acting"), "The table row as JSON")[1])
    adds = {line["column"]: (line["adds"], line["adds sd"]) for line in lines}
    assert [adds[name][0] for name in apart.names] == pytest.approx(apart.values[0].tolist(), rel=5e-3)
    assert [adds[name][1] for name in apart.names] == pytest.approx(apart.sd[0].tolist(), rel=5e-3)


def test_names_survive_a_download(show):
    tab = show("hostile")
    frame = pd.read_csv(io.BytesIO(kept(tab, "The table relevance as CSV")[1]))
    assert set(frame["column"]) == set(page_cases.HOSTILE)


def test_every_picture_is_downloaded_in_both_forms(show):
    tab = show("acting", scheme="dark")
    names = tab.locator(".plot").evaluate_all("all => all.map(each => each.id.replace('figure-', ''))")
    for name in [*names[:2], "pairs", "surface", "strips"]:
        points = kept(tab, f"The picture {name} as PNG")[1]
        assert points.startswith(b"\x89PNG")
        width = tab.locator(f"#figure-{name}").bounding_box()["width"]
        assert int.from_bytes(points[16:20]) == pytest.approx(2 * width, abs=4)
        drawn = ElementTree.fromstring(kept(tab, f"The picture {name} as SVG")[1])
        assert drawn.tag.endswith("svg")
        assert len(list(drawn.iter())) > 20
    assert kept(tab, "The shares of the variance as PNG")[1].startswith(b"\x89PNG")
    bars = ElementTree.fromstring(kept(tab, "The shares of the variance as SVG")[1])
    assert all(bar.get("fill", "").startswith("rgb") for bar in bars.iter() if not bar.tag.endswith("svg"))
    parts = [part.name for part in effects.share_parts(page_cases.acting().column_effects.variance_shares)]
    texts = ["".join(text.itertext()) for text in bars if text.tag.endswith("text")]
    assert all(text.startswith(part) for text, part in zip(texts, parts, strict=True))
    shares = json.loads(kept(tab, "The shares of the variance as JSON")[1])
    assert sum(line["share"] for line in shares) == pytest.approx(1.0, abs=0.01)


def test_a_downloaded_curve_names_its_column(show):
    tab, curves = show("acting"), page_cases.acting().column_effects.effects.curves
    for place, curve in enumerate(curves, start=1):
        name, text = kept(tab, f"The picture acts-{place} as SVG")
        assert name.split(f"-acts-{place}-")[1] == "-".join(re.findall(r"\w+", curve.name)).lower() + ".svg"
        drawn = ElementTree.fromstring(text)
        assert curve.name in ["".join(each.itertext()) for each in drawn.iter() if each.tag.endswith("text")]
        points = kept(tab, f"The picture acts-{place} as PNG")[1]
        assert int.from_bytes(points[20:24]) == pytest.approx(2 * float(drawn.get("height")), abs=4)


def test_the_code_is_downloaded(show):
    name, text = kept(show(), "The code that repeats it as Code")
    assert name.endswith("repeat.sh")
    assert text.decode() == "gpsift analyse toy.csv --target outcome\n"


@pytest.mark.parametrize("name", ["tests", "regression"])
def test_no_term_is_broken_inside_a_word(show, name):
    lines = """all => all.map(e => {
      const range = document.createRange();
      range.selectNodeContents(e);
      return [e.textContent, new Set([...range.getClientRects()].map(r => r.top)).size];
    })"""
    for term, n_lines in show(name, width=1000).locator(".terms dt").evaluate_all(lines):
        assert n_lines <= len(term.split()), term


def test_the_first_screen_can_be_read_on_a_phone(show):
    tab = show("acting", width=380)
    for element in tab.locator("#answer li, #answer p, #answer h2").all():
        box = element.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 380
    sizes = tab.locator("#answer :is(li, p, small)").evaluate_all(
        "all => all.map(e => parseFloat(getComputedStyle(e).fontSize))"
    )
    assert min(sizes) >= 12.5
