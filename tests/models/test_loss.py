import math

import pytest
import torch

from talkconv.models.loss import smoothed_cross_entropy


def test_by_hand():
    # probabilities 1/2, 1/4, 1/4
    logits = torch.tensor([[[0.5, 0.25, 0.25]]]).log()
    labels = torch.tensor([[0]])
    plain = smoothed_cross_entropy(logits, labels, label_smoothing=0.0, pad_token_id=1)
    assert plain.item() == pytest.approx(math.log(2))
    smooth = smoothed_cross_entropy(logits, labels, label_smoothing=0.3, pad_token_id=1)
    assert smooth.item() == pytest.approx(0.7 * math.log(2) + 0.1 * math.log(2 * 4 * 4))


def test_padding_is_left_out():
    logits = torch.randn(2, 3, 7)
    labels = torch.tensor([[4, 5, 1], [6, -100, 1]])
    settings = dict(label_smoothing=0.1, pad_token_id=1)
    kept = torch.stack((logits[0, 0], logits[0, 1], logits[1, 0]))[None]
    expected = smoothed_cross_entropy(kept, torch.tensor([[4, 5, 6]]), **settings)
    torch.testing.assert_close(smoothed_cross_entropy(logits, labels, **settings), expected)


def test_sum_by_the_labels_of_all_batches():
    logits, labels = torch.randn(2, 3, 7), torch.tensor([[4, 5, 1], [6, 3, 1]])
    settings = dict(label_smoothing=0.1, pad_token_id=1)
    mean = smoothed_cross_entropy(logits, labels, **settings)
    whole = smoothed_cross_entropy(logits, labels, num_items=8, **settings)
    torch.testing.assert_close(whole, mean / 2)
