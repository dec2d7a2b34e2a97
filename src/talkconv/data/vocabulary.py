"""Makes a backend of the `tokenizers` library from words or raw text.

Whole words and BPE are made of counted words; BPE and a unigram language model over bytes are
learnt from raw text.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from talkconv.data.bpe import END, learn_merges, symbols_of
from talkconv.data.specials import BOS, EOS, PAD, SPECIALS, UNK

_NO_WORDS = {BOS, PAD, EOS}
# The trainer of unigram models spreads the bytes that it has not learnt over this range of scores.
_DISTANCES = 0.03


def bpe_backend(words: Mapping[str, int], size: int, min_frequency: int = 1) -> Tokenizer:
    """Learn BPE with at most `size` entries from counted words.

    The entries are the special ones, the characters of `words` by frequency, and merges.
    """
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
    """Make BPE from its `characters` and `merges`, of which the first has the highest rank."""
    entries = dict.fromkeys([*SPECIALS, *characters, *("".join(pair) for pair in merges)])
    ids = {entry: id for id, entry in enumerate(entries)}
    backend = Tokenizer(models.BPE(ids, merges, unk_token=UNK, end_of_word_suffix=END))
    backend.decoder = decoders.BPEDecoder(suffix=END)
    return _finish(backend)


def word_backend(words: Mapping[str, int], min_frequency: int = 1) -> Tokenizer:
    """Make a vocabulary of whole words by frequency, as adaptive softmax needs them.

    Equally frequent words are in alphabetical order.
    """
    kept = (word for word in words if words[word] >= min_frequency and word not in SPECIALS)
    entries = [*SPECIALS, *sorted(kept, key=lambda word: (-words[word], word))]
    model = models.WordLevel({entry: id for id, entry in enumerate(entries)}, unk_token=UNK)
    return _finish(Tokenizer(model))


def byte_backend(texts: Iterable[str], size: int) -> Tokenizer:
    """Learn BPE over the bytes of raw texts. Decoding the ids of a text gives the same text."""
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        # A pair that occurs once is not merged, as in subword-nmt.
        min_frequency=2,
        special_tokens=list(SPECIALS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    return _learn_from_bytes(Tokenizer(models.BPE()), trainer, texts)


def unigram_backend(texts: Iterable[str], size: int) -> Tokenizer:
    """Learn a unigram language model over the bytes of raw texts. Decoding loses nothing."""
    trainer = trainers.UnigramTrainer(
        vocab_size=size,
        special_tokens=list(SPECIALS),
        unk_token=UNK,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend = _learn_from_bytes(Tokenizer(models.Unigram()), trainer, texts)
    if backend.get_vocab_size() > size:
        raise ValueError(
            f"vocabulary = {size} is too small for tokenizer = 'unigram' on this text, which needs "
            f"{backend.get_vocab_size()}: raise it, or take 'bytes'"
        )
    scores = json.loads(backend.to_str())["model"]["vocab"]
    backend.model = models.Unigram(_in_order(scores), unk_id=SPECIALS.index(UNK))
    return backend


def _in_order(scores: list[tuple[str, float]]) -> list[tuple[str, float]]:
    """Order the entries of a unigram model by score, so that learning again gives the same ids.

    The trainer adds up the scores in an order that changes from process to process, and gives the
    bytes that it has not learnt small distances from the lowest score in such an order.
    """
    specials = [(entry, 0.0) for entry in SPECIALS]
    learnt = scores[len(SPECIALS) :]
    lowest = round(min(score for _, score in learnt), 6)
    rounded = [
        (entry, lowest if len(entry) == 1 and score < lowest + _DISTANCES else round(score, 6))
        for entry, score in learnt
    ]
    # Two pairs are equal where scores differ by a rounding error, so the entries decide.
    return [*specials, *sorted(rounded, key=lambda pair: (-pair[1], pair[0]))]


def _learn_from_bytes(
    backend: Tokenizer, trainer: trainers.Trainer, texts: Iterable[str]
) -> Tokenizer:
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.train_from_iterator(texts, trainer)
    return _add_specials(backend)


def split_at_spaces(text: str) -> str:
    """Return the words of a text between single spaces.

    A special name such as <s> in a text becomes <unk>: it does not begin a sentence.
    """
    return " ".join(UNK if word in _NO_WORDS else word for word in text.split())


def _finish(backend: Tokenizer) -> Tokenizer:
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return _add_specials(backend)


def frame_texts(backend: Tokenizer, *, open_ended: bool) -> None:
    """Put </s> at the end of every text, or with `open_ended` at its beginning.

    A language model reads lines one after another. A prompt follows the </s> of the line before it,
    and has no </s> of its own, so that the network continues it.
    """
    backend.post_processor = processors.TemplateProcessing(
        single=f"{EOS} $A" if open_ended else f"$A {EOS}",
        special_tokens=[(EOS, backend.token_to_id(EOS))],
    )


def _add_specials(backend: Tokenizer) -> Tokenizer:
    frame_texts(backend, open_ended=False)
    backend.add_special_tokens([AddedToken(name, special=True) for name in SPECIALS])
    return backend
