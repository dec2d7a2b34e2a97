"""Moses' tokenizer: the rules by which tokenizer.perl splits a sentence into words.

These are the rules of today's Moses. For German, English and French they have not changed since
November 2018, and the scripts that prepared the data of the paper fetch the newest Moses; so they
are the rules of the paper, too. Moses before that date leaves a final dot at numbers and single
letters ("ergibt 4.").

sacremoses follows the older rules, splits Han and Hangul characters apart, which Moses does not,
and keeps Indic viramas, which Moses splits off. Only its lists of abbreviations are used here.
"""

from functools import cache

import regex

# Perl's character classes. Its Alphabetic has the letters of all writing systems and the vowel
# signs that go with them, but neither the Indic viramas nor combining accents.
_ALNUM, _ALPHA, _NUMBER = r"\p{Alphabetic}\p{Nd}", r"\p{Alphabetic}", r"\p{N}"
Rule = tuple[regex.Pattern[str], str]


def _rule(pattern: str, replacement: str) -> Rule:
    return regex.compile(pattern), replacement


_SPACES = regex.compile(r"\p{White_Space}+")
_CONTROLS = regex.compile(r"[\x00-\x1f]")
_DOTS = _rule(r"\.{2,}", r" \g<0> ")
_HYPHEN = _rule(rf"([{_ALNUM}])-(?=[{_ALNUM}])", r"\1 @-@ ")
_COMMAS = [
    # not within numbers (1,000)
    _rule(rf"([^{_NUMBER}]),", r"\1 , "),
    _rule(rf",([^{_NUMBER}])", r" , \1"),
    # after a number at the end
    _rule(rf"([{_NUMBER}]),$", r"\1 ,"),
]
_FINAL_QUOTE = regex.compile(r"\.' ?$")
_STARTS_LOWER = regex.compile(r"\p{Lowercase}")
_STARTS_DIGIT = regex.compile(r"[0-9]")
_HAS_ALPHA = regex.compile(rf"[{_ALPHA}]")
# an apostrophe between two characters that are not both letters
_LOOSE_APOSTROPHES = [
    _rule(rf"([^{_ALPHA}])'([^{_ALPHA}])", r"\1 ' \2"),
    _rule(rf"([^{_ALPHA}])'([{_ALPHA}])", r"\1 ' \2"),
    _rule(rf"([{_ALPHA}])'([^{_ALPHA}])", r"\1 ' \2"),
]
# languages whose contractions keep the apostrophe on the left, and those with glottal stops
_LEFT, _GLOTTAL = ("fr", "it", "ga", "ca"), ("so", "tdt")


def _special_characters(lang: str) -> list[Rule]:
    """Return the rules that split off all characters but letters, digits and common punctuation."""
    if lang in ("fi", "sv"):
        # A colon before a small letter is within a word: Nato:n.
        return [
            _rule(rf"([^{_ALNUM}\p{{White_Space}}.:'`,\-])", r" \1 "),
            _rule(r"(:)(?=$|\P{Ll})", r" \1 "),
        ]
    # A middle dot is within Catalan words: col·lapse.
    kept = "·" if lang == "ca" else ""
    rules = [_rule(rf"([^{_ALNUM}\p{{White_Space}}.{kept}'`,\-])", r" \1 ")]
    # In Tetum, an apostrophe before a small letter is within a word.
    return [*rules, _rule(r"(')(?=$|\P{Ll})", r" \1 ")] if lang == "tdt" else rules


def _apostrophes(lang: str) -> list[Rule]:
    """Return the rules for apostrophes, which depend on the contractions of a language."""
    if lang == "en":
        first, _, third = _LOOSE_APOSTROPHES
        return [
            first,
            _rule(rf"([^{_ALPHA}{_NUMBER}])'([{_ALPHA}])", r"\1 ' \2"),
            third,
            _rule(rf"([{_ALPHA}])'([{_ALPHA}])", r"\1 '\2"),
            # the 80's
            _rule(rf"([{_NUMBER}])'(s)", r"\1 '\2"),
        ]
    if lang in _LEFT:
        return [*_LOOSE_APOSTROPHES, _rule(rf"([{_ALPHA}])'([{_ALPHA}])", r"\1' \2")]
    return _LOOSE_APOSTROPHES if lang in _GLOTTAL else [_rule("'", " ' ")]


@cache
def _abbreviations(lang: str) -> dict[str, bool]:
    """Return the words that keep their dot, each with True if only before a number ("No. 7")."""
    # Importing sacremoses takes a second, and commands without Moses do not need it.
    from sacremoses.corpus import NonbreakingPrefixes

    parts = [line.partition("#NUMERIC_ONLY#") for line in NonbreakingPrefixes().words(lang)]
    return {word.strip(): bool(numeric) for word, numeric, _ in parts}


class MosesWords:
    """Splits sentences of one language into words, as tokenizer.perl does without escaping.

    >>> MosesWords("en").split("It isn't 4.")
    ['It', 'isn', "'t", '4', '.']
    """

    def __init__(self, lang: str, *, split_hyphens: bool = False) -> None:
        self._abbreviations = _abbreviations(lang)
        self._rules = [
            *_special_characters(lang),
            *([_HYPHEN] if split_hyphens else []),
            _DOTS,
            *_COMMAS,
            *_apostrophes(lang),
        ]

    def split(self, text: str) -> list[str]:
        """Return the words of a sentence."""
        text = _SPACES.sub(" ", _CONTROLS.sub("", _SPACES.sub(" ", text))).strip(" ")
        for pattern, replacement in self._rules:
            text = pattern.sub(replacement, text)
        # Two spaces in a row enclose an empty word here, as in Perl.
        words = text.rstrip(" ").split(" ")
        for place, word in enumerate(words):
            following = words[place + 1] if place + 1 < len(words) else None
            if word.endswith(".") and word.strip(".") and self._ends_here(word[:-1], following):
                words[place] = f"{word[:-1]} ."
        # A dot and a closing quote at the end are still together.
        return str(_FINAL_QUOTE.sub(" . ' ", " ".join(words))).split()

    def _ends_here(self, word: str, following: str | None) -> bool:
        """Return whether the dot after a word ends the sentence, so that it is split off."""
        if following is None:
            return True
        if ("." in word and _HAS_ALPHA.search(word)) or _STARTS_LOWER.match(following):
            return False
        only_before_number = self._abbreviations.get(word)
        if only_before_number is None:
            return True
        return only_before_number and not _STARTS_DIGIT.match(following)
