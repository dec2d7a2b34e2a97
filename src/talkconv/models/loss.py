"""The loss of the paper's networks: cross entropy with label smoothing, padding left out."""

import torch.nn.functional as F
from torch import Tensor

from talkconv.conventions import IGNORED_LABEL

# what transformers' collators put where there is nothing to predict


def smoothed_cross_entropy(
    logits: Tensor,
    labels: Tensor,
    *,
    label_smoothing: float,
    pad_token_id: int | None,
    num_items: Tensor | int | None = None,
) -> Tensor:
    """logits (B, T, V), labels (B, T) -> mean over the labels, or their sum by `num_items`.

    Labels of -100 and of padding are left out. A trainer that accumulates gradients passes the
    number of labels in all the batches of a step.
    """
    labels = without_padding(labels, pad_token_id)
    loss = F.cross_entropy(
        logits.flatten(0, -2).float(),
        labels.flatten(),
        ignore_index=IGNORED_LABEL,
        label_smoothing=label_smoothing,
        reduction="mean" if num_items is None else "sum",
    )
    return loss if num_items is None else loss / num_items


def without_padding(labels: Tensor, pad_token_id: int | None) -> Tensor:
    """Return labels in which padding has the ignored label."""
    return (
        labels
        if pad_token_id is None
        else labels.masked_fill(labels == pad_token_id, IGNORED_LABEL)
    )
