"""Tests the page in a real browser: its content, its controls, on a phone, and in the dark."""

import re

import pytest

from talkconv.demo.page import write_page
from tests.browser import Browser, needs_browser
from tests.demo.cases import findings

pytestmark = needs_browser

# short names for the scripts of the tests
NAMES = """
    const page = window, find = (choice) => document.querySelector(choice);
    const all = (choice) => [...document.querySelectorAll(choice)];
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture(scope="module")
def ask(browser, tmp_path_factory):
    """Return a function that opens the page and returns what a script on it returns."""
    file = tmp_path_factory.mktemp("page") / "index.html"
    write_page(findings(), file)

    def ask(script, width=1100, scheme="light"):
        page = browser.page(width)
        page.prefer(scheme)
        page.open(file.as_uri())
        found = page.run(NAMES + script)
        assert page.errors() == []
        return found

    return ask


def test_it_shows_what_was_learned_and_loads_nothing(ask):
    seen = ask(
        """
        return {
          sections: all("main > section").map((one) => one.getBoundingClientRect().height > 100),
          miniatures: all("#overview button svg").length,
          tokens: all("#tokens button").map((one) => one.textContent),
          rows: all("#roll .row").length,
          charts: all("svg.chart").length,
          marks: all(".translations mark").map((one) => one.textContent),
          options: all("#sentence option").map((one) => one.textContent),
          loaded: page.performance.getEntriesByType("resource").length,
        };
        """,
    )
    assert seen["sections"] == [True] * 5
    assert seen["miniatures"] == 2 * 2
    assert seen["tokens"] == ["Die", "Frau", "ruft", "an", "■"]
    assert seen["rows"] == 5
    assert seen["charts"] == 3
    assert seen["marks"] == ["<b>man", "woman"]
    assert seen["options"] == ["Die Frau ruft an.", "</script> & <b>"]
    assert seen["loaded"] == 0


def test_pointing_at_a_token_shows_its_reach(ask):
    layer = findings().sentences[0]["encoder"]["layers"][1]
    head, token = 1, 2
    seen = ask(
        f"""
        all("#overview button")[2 + {head}].click();
        all("#tokens button")[{token}].dispatchEvent(new page.PointerEvent("pointerenter"));
        return {{
          chosen: find("#chosen").textContent,
          reach: find("#reach").textContent,
          weights: all("#tokens button").map((one) => +one.style.getPropertyValue("--weight")),
          pressed: all("#tokens button").findIndex((one) => one.ariaPressed === "true"),
          row: all("#roll .row").findIndex((one) => one.classList.contains("on")),
        }};
        """,
    )
    left, right = (layer[side][head][token] for side in ("left", "right"))
    assert seen["chosen"] == "encoder, layer 2, head 2"
    assert (
        seen["reach"] == f"“ruft” looks {left:.1f} tokens to the left and {right:.1f} to the right."
    )
    assert seen["pressed"] == seen["row"] == token
    for j, weight in enumerate(seen["weights"]):
        reach = left if j <= token else right
        assert weight == pytest.approx(max(0, min(1, 1 + reach - abs(token - j))), abs=1e-6)


def test_a_tap_on_a_row_shows_its_window_and_a_decoder_looks_back_only(ask):
    seen = ask(
        """
        find("[data-side=decoder]").click();
        all("#roll .row")[1].dispatchEvent(new page.MouseEvent("click"));
        const bar = (row) => row.querySelector(".bar").getBoundingClientRect();
        const self = (row) => row.querySelector(".self").getBoundingClientRect();
        return {
          tokens: all("#tokens button").map((one) => one.textContent),
          reach: find("#reach").textContent,
          ahead: all("#roll .row").map((row) => bar(row).right - self(row).right),
          pressed: all("[data-side]").map((one) => one.ariaPressed),
        };
        """,
    )
    assert seen["tokens"] == ["■", "She", "calls"]
    assert re.fullmatch(r"“She” looks \d\.\d tokens to the left\.", seen["reach"])
    assert seen["pressed"] == ["false", "true"]
    # a bar ends with its token's cell, half a cell after the square in its middle
    assert max(seen["ahead"]) == pytest.approx(min(seen["ahead"]), abs=1)


def test_another_sentence_can_be_chosen(ask):
    seen = ask(
        """
        const choice = find("#sentence");
        choice.value = "1";
        choice.dispatchEvent(new page.Event("change"));
        return [find("#tokens button").ariaPressed, all("#roll .row").length];
        """,
    )
    assert seen == ["true", 5]


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_it_fits(ask, width):
    seen = ask(
        """
        const wide = page.document.documentElement;
        const tiny = all("#roll text, .chart text").filter(
          (one) => one.getBoundingClientRect().height < 9 && one.textContent.trim().length > 1);
        const over = wide.scrollWidth - wide.clientWidth;
        return { over, tiny: tiny.map((one) => one.textContent) };
        """,
        width=width,
    )
    assert seen == {"over": 0, "tiny": []}


def test_the_page_follows_the_dark_mode_of_the_system(ask):
    def lightness(scheme):
        colours = ask(
            """
            const style = page.getComputedStyle(page.document.body);
            return [style.backgroundColor, style.color];
            """,
            scheme=scheme,
        )
        return [sum(map(int, re.findall(r"\d+", colour)[:3])) / (3 * 255) for colour in colours]

    paper, ink = lightness("light")
    assert paper > 0.9 > 0.3 > ink
    paper, ink = lightness("dark")
    assert paper < 0.2 < 0.8 < ink
