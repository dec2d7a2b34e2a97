"""The loss of the paper's networks: cross entropy with label smoothing, padding left out."""

from typing import Any

import torch
from torch import Tensor

from talkconv.conventions import IGNORED_LABEL


def smoothed_cross_entropy(
    logits: Tensor,
    labels: Tensor,
    *,
    label_smoothing: float,
    pad_token_id: int | None,
    num_items: Tensor | int | None = None,
) -> Tensor:
    """Return the mean loss of logits (B, T, V) over labels (B, T), or the sum / `num_items`.

    Labels of -100 and of padding are left out. A trainer that accumulates gradients passes
    `num_items`, the number of labels in all batches of a step.
    """
    labels = without_padding(labels, pad_token_id).flatten()
    total: Tensor = _SmoothedCrossEntropy.apply(
        logits.flatten(0, -2).float(), labels, label_smoothing
    )
    return total / ((labels != IGNORED_LABEL).sum() if num_items is None else num_items)


def without_padding(labels: Tensor, pad_token_id: int | None) -> Tensor:
    """Return labels in which padding has the ignored label."""
    return (
        labels
        if pad_token_id is None
        else labels.masked_fill(labels == pad_token_id, IGNORED_LABEL)
    )


class _SmoothedCrossEntropy(torch.autograd.Function):
    """The sum of the losses of logits (N, V) and labels (N,).

    It makes one copy of the logits in the forward and one in the backward, where
    torch.nn.functional.cross_entropy makes three in the backward alone. The logits of a batch are
    the largest tensors of a training step.
    """

    @staticmethod
    def forward(logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
        log_probs = logits.log_softmax(dim=-1)
        counts = labels != IGNORED_LABEL
        of_label = log_probs.gather(1, labels.where(counts, 0)[:, None]).squeeze(1)
        losses = -(1 - smoothing) * of_label
        if smoothing:
            losses -= smoothing * log_probs.mean(dim=-1)
        return losses.where(counts, 0).sum()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, float], output: Tensor) -> None:
        logits, labels, ctx.smoothing = inputs
        ctx.save_for_backward(logits, labels)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (grad_out,) = grads
        logits, labels = ctx.saved_tensors
        return _grad_logits(grad_out, logits, labels, ctx.smoothing), None, None


def _grad_logits(grad_out: Tensor, logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """Return (softmax - smoothed labels) * grad_out, with zeros for labels that do not count."""
    counts = labels != IGNORED_LABEL
    grads = logits.softmax(dim=-1)
    weight = (grad_out * counts).to(grads.dtype)[:, None]  # (N, 1)
    if torch.is_grad_enabled():
        # A second derivative is wanted, so autograd must see each operation.
        target = torch.full_like(grads, smoothing / grads.shape[1])
        target = target.scatter_add(
            1, labels.where(counts, 0)[:, None], torch.full_like(weight, 1 - smoothing)
        )
        return (grads - target) * weight
    if smoothing:
        grads -= smoothing / grads.shape[1]
    grads *= weight
    return grads.scatter_add_(1, labels.where(counts, 0)[:, None], -(1 - smoothing) * weight)
