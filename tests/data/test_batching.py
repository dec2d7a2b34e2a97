import itertools

import numpy as np
import pytest
import torch
from datasets import Dataset, Features, Sequence, Value, concatenate_datasets
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from talkconv.conventions import IGNORED_LABEL
from talkconv.data.batching import (
    Batches,
    Blocks,
    Column,
    Pairs,
    Position,
    padding_share,
)

PAD, EOS = 1, 2


def dataset(**columns) -> Dataset:
    kind = Sequence(Value("int32"))
    return Dataset.from_dict(columns, features=Features(dict.fromkeys(columns, kind)))


def random_pairs(rows=200, seed=0, longest=30) -> Dataset:
    random = np.random.default_rng(seed)
    lengths = random.integers(1, longest, rows)
    source = [[*random.integers(4, 50, length).tolist(), EOS] for length in lengths]
    target = [
        [*random.integers(4, 50, max(1, length + random.integers(-3, 4))).tolist(), EOS]
        for length in lengths
    ]
    return dataset(source=source, target=target)


def pairs_batches(tokens=100, seed=3, **changes) -> Batches:
    return Batches(Pairs(random_pairs(**changes)), tokens=tokens, seed=seed)


def same(one, other) -> bool:
    return one.keys() == other.keys() and all(
        torch.equal(torch.as_tensor(one[name]), torch.as_tensor(other[name])) for name in one
    )


def test_a_column_reads_rows_across_shards():
    rows = [[5, 6, EOS], [7, EOS], [EOS], [8, 9, 10, EOS]]
    parts = [dataset(tokens=rows[:1]), dataset(tokens=rows[1:3]), dataset(tokens=rows[3:])]
    column = Column(concatenate_datasets(parts), "tokens")
    assert [column[row].tolist() for row in range(4)] == rows
    assert column.lengths.tolist() == [3, 2, 1, 4]
    assert column.padded(np.array([3, 1]), 0).tolist() == [[8, 9, 10, EOS], [7, EOS, 0, 0]]


def test_a_column_reads_a_slice():
    column = Column(dataset(tokens=[[5, EOS], [6, 7, EOS], [8, EOS]]).select(range(1, 3)), "tokens")
    assert [column[row].tolist() for row in range(2)] == [[6, 7, EOS], [8, EOS]]


def test_pairs_pad_sources_and_leave_padding_of_targets_out_of_the_loss():
    pairs = Pairs(dataset(source=[[5, EOS], [6, 7, EOS]], target=[[8, 9, EOS], [EOS]]))
    batch = pairs.collate(np.array([0, 1]))
    assert batch["input_ids"].tolist() == [[5, EOS, PAD], [6, 7, EOS]]
    assert batch["labels"].tolist() == [[8, 9, EOS], [EOS, IGNORED_LABEL, IGNORED_LABEL]]
    assert batch["input_ids"].dtype == torch.int64


def test_blocks_follow_the_token_before_them():
    blocks = Blocks(dataset(tokens=[[5, 6, 7], [8, EOS, 9], [10]]))
    batch = blocks.collate(np.array([0, 1, 2]))
    assert batch["input_ids"].tolist() == [[EOS, 5, 6, 7], [7, 8, EOS, 9], [9, 10, PAD, PAD]]
    assert batch["labels"].tolist() == [
        [EOS, 5, 6, 7],
        [7, 8, EOS, 9],
        [9, 10, IGNORED_LABEL, IGNORED_LABEL],
    ]


@pytest.mark.parametrize("tokens", [31, 100, 10_000])
def test_each_epoch_has_every_row_once_within_the_budget(tokens):
    batches = pairs_batches(tokens=tokens, longest=26)
    lengths = np.maximum(*Pairs(random_pairs(longest=26)).lengths)
    for epoch in range(3):
        plan = batches.plan(epoch)
        rows = [plan[batch] for batch in range(len(plan))]
        assert sorted(np.concatenate(rows).tolist()) == list(range(200))
        assert all(len(batch) * lengths[batch].max() <= tokens for batch in rows)


def test_batches_are_filled_as_far_as_the_budget_goes():
    rows = [[4] * 4 + [EOS]] * 7
    plan = Batches(Pairs(dataset(source=rows, target=rows)), tokens=15).plan(0)
    assert sorted(len(plan[batch]) for batch in range(len(plan))) == [1, 3, 3]


def test_seed_and_epoch_decide_the_order():
    def order(seed, epoch):
        plan = pairs_batches(seed=seed).plan(epoch)
        return [plan[batch].tolist() for batch in range(len(plan))]

    assert order(1, 0) == order(1, 0)
    assert order(1, 0) != order(1, 1)
    assert order(1, 0) != order(2, 0)
    # not only another order of the same batches
    assert sorted(map(sorted, order(1, 0))) != sorted(map(sorted, order(1, 1)))


@pytest.mark.parametrize(("processes", "accumulation"), [(2, 1), (2, 3), (3, 2)])
def test_processes_share_what_one_process_accumulates(processes, accumulation):
    alone = pairs_batches().stream()
    together = [
        pairs_batches().stream(process=process, processes=processes) for process in range(processes)
    ]
    # far enough to cross the end of the epoch within a step
    for _ in range(2 * len(pairs_batches()) // (processes * accumulation) + 1):
        expected = [next(alone) for _ in range(processes * accumulation)]
        got = [next(stream) for _ in range(accumulation) for stream in together]
        assert all(itertools.starmap(same, zip(expected, got, strict=True)))
        assert {stream.position for stream in together} == {alone.position}


def test_a_stream_goes_on_from_any_place():
    whole = pairs_batches().stream()
    for _ in range(len(pairs_batches()) + 5):
        position = whole.position
        expected = next(whole)
        assert same(next(pairs_batches().stream(position)), expected)
    assert position.epoch == 1


def test_another_number_of_processes_goes_on_from_the_same_place():
    alone = pairs_batches().stream()
    for _ in range(6):
        next(alone)
    second = pairs_batches().stream(alone.position, process=1, processes=2)
    next(alone)
    assert same(next(second), next(alone))


def test_each_batch_has_a_seed_of_its_own():
    batches = pairs_batches()
    stream = batches.stream()
    seeds = [next(stream)["seed"] for _ in range(2 * len(batches))]
    assert len(set(seeds)) == len(seeds)
    assert batches.at(Position(1, 2))["seed"] != pairs_batches(seed=4).at(Position(1, 2))["seed"]


def test_processes_share_a_validation_set():
    batches = pairs_batches()
    alone = list(batches.shared())
    assert sum(len(batch["labels"]) for batch in alone) == 200
    shares = [list(batches.shared(process, 3)) for process in range(3)]
    assert {len(share) for share in shares} == {-(-len(alone) // 3)}
    together = [batch for turn in zip(*shares, strict=True) for batch in turn]
    assert all(map(same, alone, together))
    # those that run out repeat the first
    assert all(same(batch, alone[0]) for batch in together[len(alone) :])


def test_a_sentence_beyond_the_budget_is_named_with_the_cure():
    rows = [[EOS], [4] * 19 + [EOS]]
    with pytest.raises(
        ValueError, match=r"tokens=19 must hold .* row 1 has 20 tokens: raise it, or"
    ):
        Batches(Pairs(dataset(source=rows, target=[[EOS], [EOS]])), tokens=19)


def test_no_sentences_are_refused():
    with pytest.raises(ValueError, match="at least one sentence to make batches of, got none"):
        Batches(Pairs(dataset(source=[], target=[])), tokens=10)


def test_padding_is_counted_on_both_sides():
    pairs = Pairs(dataset(source=[[4, EOS], [EOS]], target=[[EOS], [EOS]]))
    # 3 + 2 tokens in a batch of 2 x 2 and 2 x 1
    assert padding_share(pairs, Batches(pairs, tokens=100).plan(0)) == pytest.approx(1 / 6)


def test_little_is_padding_in_lengths_like_those_of_sentences():
    random = np.random.default_rng(0)
    target = np.clip(random.lognormal(2.6, 0.35, 30_000), 2, 90).astype(int)
    source = np.clip(target * random.normal(1, 0.15, 30_000), 2, 90).astype(int)
    rows = {
        name: [[4] * int(length) for length in lengths]
        for name, lengths in [("source", source), ("target", target)]
    }
    pairs = Pairs(dataset(**rows))
    assert padding_share(pairs, Batches(pairs, tokens=4000).plan(0)) < 0.08


@pytest.mark.slow
def test_at_most_8_percent_are_padding_in_multi30k(shared):
    folder = shared / "data" / "multi30k"
    texts = {
        name: (folder / f"train.{lang}").read_text(encoding="utf-8").split("\n")[:-1]
        for name, lang in [("source", "de"), ("target", "en")]
    }
    subwords = Tokenizer(models.BPE(unk_token="<unk>"))
    subwords.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(
        vocab_size=8000, special_tokens=["<s>", "<pad>", "</s>", "<unk>"], show_progress=False
    )
    subwords.train_from_iterator(itertools.chain(*texts.values()), trainer)
    ids = {
        name: [[*encoded.ids, EOS] for encoded in subwords.encode_batch(lines)]
        for name, lines in texts.items()
    }
    pairs = Pairs(dataset(**ids))
    batches = Batches(pairs, tokens=4000, seed=1)
    shares = [padding_share(pairs, batches.plan(epoch)) for epoch in range(3)]
    assert max(shares) <= 0.08, shares
