"""Stop strings: an output ends as soon as its text contains one of them."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import StoppingCriteria


class StopStrings(StoppingCriteria):
    """Ends the rows whose new text contains a stop string.

    transformers' own criterion joins the texts of single tokens. Ours decodes the tokens together,
    because rules such as Moses' put spaces and quotation marks by the words around them.
    """

    def __init__(self, tokenizer: Any, strings: Sequence[str]) -> None:
        self.tokenizer = tokenizer
        self.strings = strings
        # the tokens before the first new one
        self.prompt: int | None = None

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Tensor:
        if self.prompt is None:
            self.prompt = input_ids.shape[1] - 1
        new = input_ids[:, self.prompt :].tolist()
        texts = (self.tokenizer.decode(row, skip_special_tokens=True) for row in new)
        ends = [any(string in text for string in self.strings) for text in texts]
        return torch.tensor(ends, device=input_ids.device)
