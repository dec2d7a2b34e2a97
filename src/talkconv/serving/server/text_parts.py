"""Splits a text into the sentences that a network reads, and puts their translations in place."""

import html
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sacremoses.corpus import NonbreakingPrefixes

# a sentence ends with one of these marks, and perhaps with quotes or brackets after it
_END = re.compile(r"[.!?…。！？][\"'”’»)\]]*$")
_SPACE = re.compile(r"\s+")
# characters before and after a mark that tell whether a sentence ends there
_NEAR = 40
# a tag, or a declaration
_TAG = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]*)[^<>]*>|<!([a-zA-Z])[^<>]*>")
# elements whose text is not for readers
_NOT_TEXT = {"script", "style", "code", "pre"}


class TooManyParts(ValueError):
    """A text has more sentences than a request may have."""


@dataclass(frozen=True)
class TextParts:
    """A text as an alternation of sentences and of what stands between them."""

    # parts[0], parts[2], ... stand between sentences; parts[1], parts[3], ... are the sentences
    parts: list[str]

    @property
    def sentences(self) -> list[str]:
        """The parts that a network reads."""
        return self.parts[1::2]

    def filled(self, outputs: Sequence[str]) -> str:
        """Return the text with an output in the place of each sentence."""
        found = list(self.parts)
        found[1::2] = outputs
        return "".join(found)


def whole_lines(text: str, most: int | None = None) -> TextParts:
    """Split a text into its lines: each is one input."""
    return _parts(text, lambda line: [line], most)


def sentences_of(text: str, lang: str, most: int | None = None) -> TextParts:
    """Split a text into sentences; an abbreviation of the language does not end one.

    Raises TooManyParts if there are more than `most`.

    >>> sentences_of("Dr. No kam. Er ging.", "de").sentences
    ['Dr. No kam.', 'Er ging.']
    """
    return _parts(text, lambda line: _sentences(line, lang), most)


def html_parts(text: str, lang: str, most: int | None = None) -> TextParts:
    """Split HTML into the sentences of its text; tags, comments and scripts stand between them.

    An output must be escaped before it takes the place of a sentence.

    >>> html_parts("<p>A &amp; B.<br>C!</p>", "en").parts
    ['<p>', 'A & B.', '<br>', 'C!', '</p>']
    """
    found: list[str] = []
    between: list[str] = []
    for is_text, piece in _html_pieces(text):
        left = None if most is None else most - len(found) // 2
        parts = sentences_of(html.unescape(piece), lang, left).parts if is_text else [piece]
        if len(parts) == 1:
            between.append(piece)
            continue
        # spaces stand between sentences, which need no escapes
        found += ["".join([*between, parts[0]]), *parts[1:-1]]
        between = [parts[-1]]
    return TextParts([*found, "".join(between)])


def _html_pieces(text: str) -> Iterator[tuple[bool, str]]:
    """Yield pieces of HTML, and whether each is text; the time is linear in their length."""
    at = begin = 0
    while (at := text.find("<", at)) >= 0:
        end = _markup_end(text, at)
        if end is None:
            at += 1
            continue
        if begin < at:
            yield True, text[begin:at]
        yield False, text[at:end]
        at = begin = end
    if begin < len(text):
        yield True, text[begin:]


def _markup_end(text: str, at: int) -> int | None:
    """Return where the markup that begins at a "<" ends; None if it is an ordinary character."""
    if text.startswith("<!--", at):
        end = text.find("-->", at + 4)
        return len(text) if end < 0 else end + 3
    tag = _TAG.match(text, at)
    if tag is None:
        return None
    if (tag[1] or "").lower() not in _NOT_TEXT or text.startswith("</", at):
        return tag.end()
    closing = re.compile(f"</{tag[1]}[^<>]*>", flags=re.IGNORECASE).search(text, tag.end())
    return len(text) if closing is None else closing.end()


def _parts(text: str, split: Callable[[str], list[str]], most: int | None) -> TextParts:
    found: list[str] = []
    # what stands before the next sentence; joined once, so that long texts take linear time
    between: list[str] = []
    for number, line in enumerate(text.split("\n")):
        between += ["\n"] if number else []
        if not line or line.isspace():
            between.append(line)
            continue
        for sentence in split(line):
            stripped = sentence.strip()
            before = sentence[: len(sentence) - len(sentence.lstrip())]
            found += ["".join([*between, before]), stripped]
            between = [sentence[len(before) + len(stripped) :]]
            if most is not None and len(found) > 2 * most:
                raise TooManyParts
    return TextParts([*found, "".join(between)])


def _sentences(line: str, lang: str) -> list[str]:
    """Cut a line behind each sentence; the spaces between two stay with the second."""
    cuts = [0]
    for space in _SPACE.finditer(line):
        # only what is near is looked at, so that long lines take linear time
        before = line[max(cuts[-1], space.start() - _NEAR) : space.start()]
        after = line[space.end() : space.end() + _NEAR]
        if _END.search(before) and _begins(after) and not _is_abbreviation(before, lang):
            cuts.append(space.start())
    return [line[begin:end] for begin, end in zip(cuts, [*cuts[1:], len(line)], strict=True)]


def _begins(rest: str) -> bool:
    """Return whether a text may begin a sentence: no small letter follows quotes or brackets."""
    first = rest.lstrip("\"'“‘«„([¿¡")[:1]
    return bool(first) and not first.islower()


def _is_abbreviation(before: str, lang: str) -> bool:
    """Return whether the last word's full stop may be within a sentence, as in "Dr." and "A."."""
    word = before.split()[-1]
    if not word.endswith("."):
        return False
    stem = word[:-1].lstrip("(\"'“‘«„[")
    return stem in _prefixes(lang) or (len(stem) == 1 and stem.isalpha() and stem.isupper())


@lru_cache(maxsize=8)
def _prefixes(lang: str) -> frozenset[str]:
    """Return the abbreviations that Moses knows of a language; English ones for unknown ones."""
    words = NonbreakingPrefixes()
    known = words.available_langs.values()
    found = words.words(lang if lang in known else "en")
    return frozenset(word.split()[0] for word in found if word.strip())
