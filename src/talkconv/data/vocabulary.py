"""From counted words to a backend of the `tokenizers` library: BPE, or whole words."""

from collections import Counter
from collections.abc import Mapping

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

from talkconv.data.bpe import END, learn_merges, symbols_of

BOS, PAD, EOS, UNK = SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
_NO_WORDS = {BOS, PAD, EOS}


def bpe_backend(words: Mapping[str, int], size: int, min_frequency: int = 1) -> Tokenizer:
    """At most `size` entries: the special ones, the characters of `words` by frequency, and merges
    for all the rest."""
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for symbol in symbols_of(word):
            counts[symbol] += count
    kept = {symbol: count for symbol, count in counts.items() if count >= min_frequency}
    characters = sorted(kept, key=lambda symbol: (-kept[symbol], symbol))
    entries = dict.fromkeys([*SPECIALS, *characters])
    if len(entries) > size:
        raise ValueError(
            f"vocabulary = {size} must hold {len(kept)} characters and {len(SPECIALS)} special "
            f"words: raise it, or min_frequency = {min_frequency} to leave out rare characters"
        )
    known = {word: count for word, count in words.items() if kept.keys() >= set(symbols_of(word))}
    merges = []
    for pair in learn_merges(known):
        if len(entries) == size:
            break
        merges.append(pair)
        entries["".join(pair)] = None
    return bpe_of_merges(characters, merges)


def bpe_of_merges(characters: list[str], merges: list[tuple[str, str]]) -> Tokenizer:
    """Splits a word into `characters`, then joins what `merges` say, the first of them first."""
    entries = dict.fromkeys([*SPECIALS, *characters, *("".join(pair) for pair in merges)])
    ids = {entry: id for id, entry in enumerate(entries)}
    backend = Tokenizer(models.BPE(ids, merges, unk_token=UNK, end_of_word_suffix=END))
    backend.decoder = decoders.BPEDecoder(suffix=END)
    return _finish(backend)


def word_backend(words: Mapping[str, int], min_frequency: int = 1) -> Tokenizer:
    """Whole words by frequency, as adaptive softmax wants them; ties in alphabetical order."""
    kept = (word for word in words if words[word] >= min_frequency and word not in SPECIALS)
    entries = [*SPECIALS, *sorted(kept, key=lambda word: (-words[word], word))]
    model = models.WordLevel({entry: id for id, entry in enumerate(entries)}, unk_token=UNK)
    return _finish(Tokenizer(model))


def split_at_spaces(text: str) -> str:
    """Words between single spaces. <s> in somebody's text is a word that nobody knows, not the
    beginning of a sentence."""
    return " ".join(UNK if word in _NO_WORDS else word for word in text.split())


def _finish(backend: Tokenizer) -> Tokenizer:
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    eos = backend.token_to_id(EOS)
    backend.post_processor = processors.TemplateProcessing(
        single=f"$A {EOS}", special_tokens=[(EOS, eos)]
    )
    backend.add_special_tokens([AddedToken(name, special=True) for name in SPECIALS])
    return backend
