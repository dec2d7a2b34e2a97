"""The page of a server, and the files that it loads from the server alone."""

from functools import lru_cache
from html import escape
from string import Template

from talkconv.conventions import LANGUAGE_MODELLING, SUMMARIZATION, TRANSLATION
from talkconv.serving.page import STYLE, WINDOWS, explorer_html, page_text
from talkconv.serving.server.languages import language_name
from talkconv.serving.server.service import Service

# how many outputs of a sentence the page shows, if the search is so wide
SHOWN = 5
_KEY = '<p><label for="key">Key</label> <input id="key" type="password" autocomplete="off"></p>'


@lru_cache
def page_files() -> dict[str, tuple[str, str]]:
    """Return the text and the kind of each file that the page loads, by its name."""
    return {
        "page.css": (page_text(STYLE), "text/css"),
        "windows.js": (page_text(WINDOWS), "text/javascript"),
        "serve.js": (page_text("serve.js"), "text/javascript"),
    }


def page(service: Service, *, needs_key: bool) -> str:
    """Return the page: a text to write, its outputs, and the windows over a sentence."""
    card = service.engine.card
    source = language_name(card.source_lang or "")
    target = language_name(card.target_lang or "")
    words = {
        TRANSLATION: (f"From {source} to {target}", source, target, "Type or paste text"),
        SUMMARIZATION: ("Summaries", "Text", "Summary", "Paste a text, in one line"),
        LANGUAGE_MODELLING: ("What comes next?", "Text", "Continuation", "Begin a line"),
    }
    title, reads, writes, placeholder = map(escape, words[service.task])
    beams = service.engine.model.settings.num_beams
    return Template(page_text("serve.html")).substitute(
        title=title,
        name=escape(card.recipe),
        reads=reads,
        writes=writes,
        placeholder=placeholder,
        alternatives=min(beams, SHOWN) - 1,
        windows="yes" if service.engine.has_windows else "",
        key=_KEY if needs_key else "",
        explorer=explorer_html(f"Encoder reads {reads}", f"Decoder writes {writes}"),
    )
