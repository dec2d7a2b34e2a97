import math

import pytest
import torch
import torch.nn.functional as F

from talkconv.models.loss import (
    _SmoothedCrossEntropy,
    smoothed_cross_entropy,
    without_padding,
)


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


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_value_and_gradient_are_those_of_torch(smoothing, dtype):
    torch.manual_seed(0)
    logits = torch.randn(2, 5, 11).to(dtype).requires_grad_()
    labels = torch.tensor([[4, 5, 1, 9, 10], [6, -100, 0, 1, 1]])
    ours = smoothed_cross_entropy(logits, labels, label_smoothing=smoothing, pad_token_id=1)
    torchs = F.cross_entropy(
        logits.flatten(0, 1).float(),
        labels.masked_fill(labels == 1, -100).flatten(),
        label_smoothing=smoothing,
    )
    torch.testing.assert_close(ours, torchs)
    grads = [torch.autograd.grad(3 * loss, logits)[0] for loss in (ours, torchs)]
    torch.testing.assert_close(*grads)
    assert not grads[0][0, 2].any()  # padding
    assert not grads[0][1, 1].any()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_gradient_is_the_same_if_a_second_one_is_wanted(smoothing):
    """It is then computed by other operations, which gradgradcheck compares with itself alone."""
    labels = torch.tensor([[4, 1, 2]])
    logits = torch.randn(1, 3, 5, dtype=torch.float64, requires_grad=True)
    loss = 3 * smoothed_cross_entropy(logits, labels, label_smoothing=smoothing, pad_token_id=1)
    (expected,) = torch.autograd.grad(loss, logits, retain_graph=True)
    (recorded,) = torch.autograd.grad(loss, logits, create_graph=True)
    assert recorded.requires_grad
    torch.testing.assert_close(recorded, expected)


def test_second_derivatives():
    labels = torch.tensor([[4, 1, 2]])
    logits = torch.randn(1, 3, 5, dtype=torch.float64, requires_grad=True)

    def loss(logits):
        return _SmoothedCrossEntropy.apply(
            logits.flatten(0, 1), without_padding(labels, 1).flatten(), 0.1
        )

    assert torch.autograd.gradcheck(loss, logits)
    assert torch.autograd.gradgradcheck(loss, logits)
