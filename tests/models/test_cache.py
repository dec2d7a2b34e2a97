import pytest
import torch

from talkconv.models.cache import TaLKConvCache
from tests.models.cases import MIXERS, language_model, seq2seq, tokens


def near(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mixer", MIXERS)
@pytest.mark.parametrize("chunks", [[1] * 11, [4, 4, 3], [7, 1, 1, 2], [11]])
@torch.no_grad()
def test_step_by_step_equals_all_at_once(mixer, chunks):
    model = language_model(decoder_mixer=mixer)
    words = tokens(2, 11)
    cache = model.empty_cache(2)
    parts = [model(chunk, past_key_values=cache).logits for chunk in words.split(chunks, dim=1)]
    near(torch.cat(parts, dim=1), model(words).logits)
    assert cache.get_seq_length() == 11


@pytest.mark.parametrize("mixer", MIXERS)
@torch.no_grad()
def test_translation_step_by_step_equals_all_at_once(mixer):
    model = seq2seq(decoder_mixer=mixer, encoder_mixer=mixer)
    source, target = tokens(3, 8), tokens(3, 6, seed=1)
    source[1, 5:] = model.config.pad_token_id
    whole = model(source, decoder_input_ids=target)
    cache = model.empty_cache(3)
    parts = [
        model(source, decoder_input_ids=target[:, [t]], past_key_values=cache).logits
        for t in range(6)
    ]
    near(torch.cat(parts, dim=1), whole.logits)


@pytest.mark.parametrize("mixer", MIXERS)
@pytest.mark.parametrize("chunk", [2, 20])
@torch.no_grad()
def test_left_padding_changes_nothing(mixer, chunk):
    model = language_model(decoder_mixer=mixer)
    words = tokens(3, 9)
    padding = [0, 4, 2]
    padded = words.clone()
    for row, count in enumerate(padding):
        padded[row, :count] = model.config.pad_token_id
        padded[row, count:] = words[row, : 9 - count]
    mask = (padded != model.config.pad_token_id).long()
    cache = model.empty_cache(3)
    for begin in range(0, 9, chunk):
        end = min(begin + chunk, 9)
        # the mask is that of all tokens so far, as generate passes it
        output = model(padded[:, begin:end], attention_mask=mask[:, :end], past_key_values=cache)
    after = model(words[:, :1], past_key_values=cache).logits
    at_once = model(padded, attention_mask=mask).logits
    for row, count in enumerate(padding):
        alone = torch.cat((words[row, : 9 - count], words[row, :1]))[None]
        expected = model(alone).logits[0]
        near(output.logits[row, -1], expected[-2])
        near(after[row, -1], expected[-1])
        near(at_once[row, -1], expected[-2])


@pytest.mark.parametrize("mixer", MIXERS)
@torch.no_grad()
def test_beams_are_repeated_and_reordered(mixer):
    model = language_model(decoder_mixer=mixer)
    words = tokens(2, 5)
    words[1, :2] = model.config.pad_token_id
    mask = (words != model.config.pad_token_id).long()
    cache = model.empty_cache(2)
    model(words, attention_mask=mask, past_key_values=cache)
    cache.batch_repeat_interleave(3)
    order = torch.tensor([2, 0, 1, 5, 5, 3])
    second = tokens(6, 1, seed=2)
    model(second, past_key_values=cache)
    cache.reorder_cache(order)
    third = tokens(6, 1, seed=3)
    stepped = model(third, past_key_values=cache).logits[:, -1]
    rows = torch.arange(2).repeat_interleave(3)
    whole = torch.cat((words[rows], second), dim=1)[order]
    whole = torch.cat((whole, third), dim=1)
    ones = mask.new_ones(6, 2)
    whole_mask = torch.cat((mask[rows][order], ones), dim=1)
    near(stepped, model(whole, attention_mask=whole_mask).logits[:, -1])


def held(cache):
    """Return the bytes that a cache keeps in memory. Views count with their whole storage."""
    storages = {
        state.tokens.untyped_storage().data_ptr(): state.tokens.untyped_storage().nbytes()
        for state in cache.states
    }
    return sum(storages.values())


@pytest.mark.parametrize("mixer", ["talk", "light", "dynamic"])
@torch.no_grad()
def test_size_does_not_depend_on_what_was_generated(mixer):
    model = language_model(decoder_mixer=mixer)
    sizes = []
    for seen in (20, 200):
        cache = model.empty_cache(2)
        model(tokens(2, seen), past_key_values=cache)
        model(tokens(2, 1), past_key_values=cache)
        sizes.append(held(cache))
    assert sizes[0] == sizes[1]


@torch.no_grad()
def test_tokens_are_taken_back():
    model = language_model()
    words = tokens(2, 8)
    cache = model.empty_cache(2, rollback=3)
    model(words[:, :5], past_key_values=cache)
    model(tokens(2, 3, seed=9), past_key_values=cache)
    cache.crop(-3)
    near(model(words[:, 5:], past_key_values=cache).logits, model(words).logits[:, 5:])


@torch.no_grad()
def test_projected_states_are_kept_once_a_sentence():
    model = seq2seq()
    source = tokens(2, 7)
    cache = model.empty_cache(2 * 4)
    logits = model(source, decoder_input_ids=tokens(8, 1), past_key_values=cache).logits
    assert [each.keys.shape[0] for each in cache.projected] == [2, 2, 2]
    copied = source.repeat_interleave(4, dim=0)
    near(logits, model(copied, decoder_input_ids=tokens(8, 1)).logits)


def test_a_foreign_cache_is_refused():
    with pytest.raises(TypeError, match=r"model\.empty_cache\(batch\)"):
        language_model()(tokens(1, 2), past_key_values=object())


def test_a_cache_without_states_has_read_nothing():
    cache = TaLKConvCache()
    assert (len(cache), cache.get_seq_length(), cache.tokens) == (0, 0, 0)
