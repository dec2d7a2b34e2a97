"""The server's page in a real browser, around a real network."""

import re

import pytest

from talkconv.serving.server.open_engine import open_engine
from tests.browser import CTRL, Browser, needs_browser
from tests.serving.server.cases import running

pytestmark = needs_browser

TEXT = "Der Hund läuft. Die Katze schläft.\n\nKatze"
SENTENCES = ["Der Hund läuft.", "Die Katze schläft.", "Katze"]
READY = "!document.getElementById('windows').hidden && document.querySelector('#roll .row')"
DONE = "document.getElementById('output').ariaBusy === 'false'"


@pytest.fixture(scope="module")
def client(translation):
    with running(open_engine(translation.folder, threads=1)) as client:
        yield client


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("browser")) as browser:
        yield browser


@pytest.fixture
def page(browser, client):
    page = browser.page()
    page.open(f"http://127.0.0.1:{client.port}/")
    yield page
    assert page.errors() == []
    assert {re.match(r"(\w+://[^/]*/)|data:", each)[0] for each in page.loaded()} <= {
        f"http://127.0.0.1:{client.port}/",
        "data:",
    }


def written(page, text=TEXT):
    """Type a text and wait until everything about it is there."""
    page.type(text)
    page.wait(f"{DONE} && {READY}")


def pressed(page, choice):
    """Return the number of the button that is pressed."""
    return page.run(
        f"return [...document.querySelectorAll('{choice}')]"
        ".findIndex((one) => one.ariaPressed === 'true');"
    )


def test_what_is_typed_is_translated(page, client):
    written(page)
    expected = client.translate(TEXT)[1]["translatedText"]
    assert page.text("#output") == expected
    assert page.texts("#output [role=button]") == client.translate(SENTENCES)[1]["translatedText"]
    assert page.text("#status") == ""
    page.run("document.getElementById('text').select();")
    page.type(" ")
    page.wait("!document.getElementById('output').textContent")
    assert page.run("return document.getElementById('windows').hidden;")


def test_the_chart_fits_after_its_place_was_hidden_or_tiny(page):
    written(page, "Der Hund läuft.")
    fits = (
        "document.querySelector('#roll svg').viewBox.baseVal.width === "
        "document.getElementById('roll').clientWidth"
    )
    page.run("document.getElementById('windows').hidden = true;")
    page.resize(700)
    page.run("document.getElementById('windows').hidden = false;")
    page.wait(fits)
    page.resize(60)
    page.resize(1200)
    page.wait(fits)


def test_the_best_outputs_of_a_chosen_sentence_are_shown(page, client):
    written(page)
    for number in (1, 0):
        page.click("#output [role=button]", number)
        page.wait(
            f"document.querySelectorAll('#output [role=button]')[{number}].ariaPressed === 'true'"
        )
        answer = client.translate(SENTENCES[number], alternatives=2)[1]
        best = [answer["translatedText"], *answer["alternatives"]]
        shown = [re.sub(r" -?\d+\.\d\d$", "", text) for text in page.texts("#best li")]
        assert shown == best


def test_pointing_at_a_token_shows_how_far_it_looks(page, client):
    written(page, "Der Hund läuft.")
    answer = client.translate("Der Hund läuft.")[1]["translatedText"]
    _, look = client.post("/windows", q="Der Hund läuft.", output=answer)
    page.click("#overview button", 1)
    tokens = look["encoder"]["tokens"]
    assert page.texts("#tokens button") == [token.strip() for token in tokens]
    layer = look["encoder"]["layers"][0]
    for token in (0, len(tokens) - 1, 1):
        page.point("#tokens button", token)
        left, right = (layer[side][1][token] for side in ("left", "right"))
        said = f"“{tokens[token].strip()}” looks {left:.1f} tokens to the left"
        assert page.text("#reach") == f"{said} and {right:.1f} to the right."
        assert pressed(page, "#tokens button") == token
    page.click("[data-side=decoder]")
    assert page.texts("#tokens button")[0] == "■"
    page.point("#roll .row .hit", 0)
    assert "to the right" not in page.text("#reach")


def test_everything_works_by_keyboard(page):
    # the text has the focus from the beginning
    page.type("Der Hund läuft. Na?")
    page.press("Enter", CTRL)
    page.wait(f"{DONE} && {READY}")

    def focus():
        return page.run(
            "const one = document.activeElement, near = one.parentElement;"
            "return [one.id || near.id || near.className, one.textContent];"
        )

    def tab_to(place):
        for _ in range(40):
            page.press("Tab")
            if focus()[0] == place:
                return
        raise AssertionError(f"Tab does not lead to {place}")

    tab_to("output")
    page.press("Tab")
    page.press("Enter")
    page.wait("document.querySelectorAll('#output [role=button]')[1].ariaPressed === 'true'")
    page.wait("document.querySelectorAll('#tokens button').length <= 4")
    tab_to("sides")
    page.press("Tab")
    page.press("Enter")
    assert pressed(page, "[data-side]") == 1
    tab_to("layer")
    page.press("Tab")
    page.press("Enter")
    # the overview is drawn anew, and the focus stays where it was
    assert focus()[0] == "layer"
    assert pressed(page, "#overview button") == 1
    tab_to("tokens")
    assert pressed(page, "#tokens button") == 0
    page.press("ArrowRight")
    assert pressed(page, "#tokens button") == 1
    page.press("ArrowLeft")
    assert pressed(page, "#tokens button") == 0
    # who sees the focus can follow it
    outline = "return getComputedStyle(document.activeElement).outlineStyle;"
    assert page.run(outline) == "solid"


def test_sentences_flow_like_the_text_that_they_are(page):
    page.resize(360, 740, mobile=True)
    tops = page.run(
        """
        layOut(["", "a", " ", "b", ""]);
        ["Kurz.", "Ein langer Satz ".repeat(20)].forEach((text, i) => {
          sentences[i].button.textContent = text;
        });
        return sentences.map(({ button }) => [...button.getClientRects()].map(({ top }) => top));
        """
    )
    # the second sentence begins in the line of the first one, and goes on in others
    assert tops[1][0] == tops[0][0]
    assert len(set(tops[1])) > 2


@pytest.mark.parametrize("width", [320, 360, 768, 1280])
def test_it_fits_a_phone_and_a_large_screen(page, width):
    page.resize(width, 740, mobile=width < 500)
    written(page, f"{TEXT} {'ohneleerzeichen' * 12}")
    seen = page.run(
        """
        const wide = document.documentElement;
        const box = (id) => document.getElementById(id).getBoundingClientRect();
        return {
          over: wide.scrollWidth - wide.clientWidth,
          below: box("output").top > box("text").bottom,
          outside: [...document.querySelectorAll("main *")].filter((one) =>
            one.getBoundingClientRect().right > wide.clientWidth + 1).length,
        };
        """
    )
    assert seen == {"over": 0, "below": width < 700, "outside": 0}
    if width < 500:
        page.tap("#tokens button", 1)
        page.wait("document.querySelectorAll('#tokens button')[1].ariaPressed === 'true'")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_light_and_dark(page, scheme):
    page.prefer(scheme)
    written(page)
    # the contrast of WCAG 2: 4.5 is what normal text needs
    contrasts = page.run(
        """
        const numbers = (colour) => colour.match(/[\\d.]+/g).map(Number);
        const light = (colour) => numbers(colour).slice(0, 3).map((one) => one / 255)
          .map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
          .reduce((sum, one, i) => sum + one * [0.2126, 0.7152, 0.0722][i], 0);
        const isClear = (colour) => numbers(colour)[3] === 0;
        const paper = (one) => {
          const colour = getComputedStyle(one).backgroundColor;
          return isClear(colour) && one.parentElement ? paper(one.parentElement) : colour;
        };
        const contrast = (one) => {
          const both = [light(getComputedStyle(one).color), light(paper(one))];
          return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
        };
        const choices = ["body", "h1", ".kicker", "label", "#text", "#output [role=button]",
          "#best li", "#best .score", ".sides button[aria-pressed=true]",
          ".sides button[aria-pressed=false]", "#reach", "h3", "footer p", "footer a"];
        return choices.map((choice) => [choice, contrast(document.querySelector(choice))]);
        """
    )
    assert {choice: round(found, 1) for choice, found in contrasts if found < 4.5} == {}
    paper = page.run("return getComputedStyle(document.body).backgroundColor;")
    lightness = sum(map(int, re.findall(r"\d+", paper)[:3])) / (3 * 255)
    assert lightness > 0.9 if scheme == "light" else lightness < 0.2


def test_a_refusal_is_told(browser, client):
    page = browser.page()
    page.open(f"http://127.0.0.1:{client.port}/")
    page.type("Ja.\n" * 300)
    page.wait("document.getElementById('status').classList.contains('wrong')")
    assert page.text("#status") == "a request must have at most 256 sentences"
    # the browser itself notes the status in its console
    assert all("413" in error for error in page.errors())


def test_a_key_is_asked_for_and_sent(browser, translation):
    with running(open_engine(translation.folder, threads=1), api_key="geheim") as client:
        page = browser.page()
        page.open(f"http://127.0.0.1:{client.port}/")
        page.type("Katze")
        page.wait("document.getElementById('status').classList.contains('wrong')")
        assert page.text("#status") == "this server needs its api_key"
        page.click("#key")
        page.type("geheim")
        page.press("Enter")
        page.wait(f"{DONE} && {READY}")
        assert (
            page.text("#output") == client.translate("Katze", api_key="geheim")[1]["translatedText"]
        )
        assert page.text("#status") == ""


def test_a_server_that_has_stopped_is_told(browser, translation):
    with running(open_engine(translation.folder, threads=1)) as client:
        page = browser.page()
        page.open(f"http://127.0.0.1:{client.port}/")
        written(page, "Katze Hund. Na?")
    page.click("#output [role=button]", 1)
    page.wait("document.getElementById('status').classList.contains('wrong')")
    assert page.text("#status") == "The server cannot be reached."
    assert not any("Uncaught" in error or "TypeError" in error for error in page.errors())
