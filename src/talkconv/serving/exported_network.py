"""An exported network in ONNX Runtime. It needs onnxruntime and numpy, and no torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from talkconv.search.network import Floats, Forbidden, Ints
from talkconv.serving.export_card import DECODER, ENCODER, NetworkShape

# The memory of a step of t tokens grows with t * t, so longer prompts are read in pieces.
MOST_TOKENS = 128

Value = Any  # onnxruntime.OrtValue, which has no types
_NOTHING: Ints = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Encoded:
    """Sources that were read: their mask (B, S) and, for each layer, keys and values."""

    values: dict[str, Value]
    # (layers, 2, B, S, H): how many tokens to the left and to the right each token looked at
    reach: NDArray[np.float32]


class ExportedNetwork:
    """Runs the graphs of an export; serving/graphs.py documents their inputs and outputs.

    It is a talkconv.search.network.Network.
    """

    def __init__(self, folder: Path, config: NetworkShape, threads: int | None = None) -> None:
        self.config = config
        has_encoder = config.is_encoder_decoder
        self._encoder = _session(folder / ENCODER, threads) if has_encoder else None
        self._decoder = _session(folder / DECODER, threads)
        self._state_names = [f"state_{layer}" for layer in range(len(config.decoder_l_max))]

    def num_parameters(self) -> int:
        """Return how many weights the network has."""
        return self.config.parameters

    def begin_search(
        self, input_ids: Ints, attention_mask: Ints | None = None
    ) -> tuple[Ints, "ExportedStep"]:
        """Return the prompts (B, p) of a search and the step that continues them."""
        mask = np.ones_like(input_ids) if attention_mask is None else attention_mask
        if not self.config.is_encoder_decoder:
            return input_ids, self.begin(len(input_ids), mask=mask)
        first = self.config.decoder_start_token_id
        if first is None:
            raise ValueError("generation needs a decoder_start_token_id, got None")
        start = np.full((len(input_ids), 1), first, dtype=np.int64)
        return start, self.begin(len(input_ids), self.encode(input_ids, mask))

    def encode(self, tokens: Ints, mask: Ints) -> Encoded:
        """Read sources (B, S), whose mask is 0 at padding."""
        assert self._encoder is not None, "a language model has no encoder"
        names = [each.name for each in self._encoder.get_outputs()]
        feeds = {"tokens": _value(tokens), "mask": _value(mask)}
        found = dict(zip(names, self._encoder.run_with_ort_values(names, feeds), strict=True))
        reach = found.pop("reach").numpy()
        return Encoded({**found, "mask": feeds["mask"]}, reach)

    def begin(
        self, batch: int, encoded: Encoded | None = None, mask: Ints | None = None
    ) -> "ExportedStep":
        """Return the step that generates outputs for `batch` sentences, before the first token.

        `encoded` are their sources. `mask` (batch, p) is 0 at the padding of a language model's
        prompts, which stands on their left.
        """
        return ExportedStep(self, batch, encoded, mask)

    def empty_states(self, batch: int) -> list[Value]:
        """Return the state of each layer before the first token."""
        heads, channels = self.config.heads, self.config.dim // self.config.heads
        return [
            _value(np.zeros((batch, heads, l_max, channels), dtype=np.float32))
            for l_max in self.config.decoder_l_max
        ]

    def run_decoder(
        self, outputs: Sequence[str], inputs: dict[str, Any], states: Sequence[Value]
    ) -> tuple[list[Value], list[Value]]:
        """Run one step; return the outputs that were asked for, and the new states."""
        feeds = {
            name: _value(value) if isinstance(value, np.ndarray) else value
            for name, value in inputs.items()
        }
        feeds |= dict(zip(self._state_names, states, strict=True))
        new = [f"new_{name}" for name in self._state_names]
        found = self._decoder.run_with_ort_values([*outputs, *new], feeds)
        return found[: len(outputs)], found[len(outputs) :]


class ExportedStep:
    """Reads the next tokens of some sentences; see talkconv.search.network.Step.

    logits() and reach() read tokens in the same way, for losses and for the windows of the page.
    """

    def __init__(
        self, network: ExportedNetwork, batch: int, encoded: Encoded | None, mask: Ints | None
    ) -> None:
        self.network = network
        self.batch = batch
        self.projected = {} if encoded is None else encoded.values
        self.prompt_mask = mask
        self.states = network.empty_states(batch)
        # (B,) tokens that were read, padding aside
        self.start = np.zeros(batch, dtype=np.int64)
        # which row of the states each row of the next tokens continues; None: each its own
        self.parents: Ints | None = None

    def best(
        self, tokens: Ints, parents: Ints | None, forbidden: Forbidden | None, k: int
    ) -> tuple[Floats, Ints]:
        """Return log-probabilities and words of the k best that may follow: (rows, k) each."""
        rows, words = (_NOTHING, _NOTHING) if forbidden is None else forbidden
        wanted = {"ranks": np.zeros(k, dtype=np.int64)}
        wanted |= {"forbidden_rows": rows, "forbidden_words": words}
        self.parents = parents
        *early, last = self._pieces(tokens)
        for piece, mask in early:
            self._read((), piece, mask)
        scores, best = self._read(("best_scores", "best_words"), *last, wanted=wanted)
        return scores.numpy(), best.numpy()

    def log_probs(self, tokens: Ints, parents: Ints | None) -> Floats:
        """Return the log-probabilities of all words that may follow: (rows, V)."""
        return log_softmax(self.logits(tokens, 1, parents)[:, 0])

    def logits(self, tokens: Ints, kept: int, parents: Ints | None = None) -> Floats:
        """Return the logits after the last `kept` tokens of each row: (rows, kept, V)."""
        self.parents = parents
        found: list[Floats] = []
        left = tokens.shape[1]
        for piece, mask in self._pieces(tokens):
            left -= piece.shape[1]
            count = min(max(kept - left, 1), piece.shape[1])
            (logits,) = self._read(("logits",), piece, mask, kept=count)
            found += [logits.numpy()] if kept > left else []
        return np.concatenate(found, axis=1)

    def reach(self, tokens: Ints) -> NDArray[np.float32]:
        """Read tokens (1, t) and return how far each looked: (layers, 2, 1, t, H)."""
        found = [
            self._read(("reach",), piece, mask)[0].numpy() for piece, mask in self._pieces(tokens)
        ]
        return np.concatenate(found, axis=3)

    def _pieces(self, tokens: Ints) -> list[tuple[Ints, Ints]]:
        """Cut tokens (rows, t) and the mask of their padding into pieces of bounded length."""
        mask, self.prompt_mask = self.prompt_mask, None
        if mask is None:
            mask = np.ones((self.batch, tokens.shape[1]), dtype=np.int64)
        bounds = range(0, tokens.shape[1], MOST_TOKENS)
        return [(tokens[:, i : i + MOST_TOKENS], mask[:, i : i + MOST_TOKENS]) for i in bounds]

    def _read(
        self,
        outputs: Sequence[str],
        tokens: Ints,
        mask: Ints,
        *,
        kept: int = 1,
        wanted: dict[str, Any] | None = None,
    ) -> list[Value]:
        rows, t = tokens.shape
        parents, self.parents = self.parents, None
        inputs = {
            "tokens": tokens.reshape(self.batch, -1, t),
            "parents": (np.arange(rows) if parents is None else parents).reshape(self.batch, -1),
            "start": self.start,
            "kept": np.arange(t - kept, t),
            "ranks": np.zeros(1, dtype=np.int64),
            "forbidden_rows": _NOTHING,
            "forbidden_words": _NOTHING,
            **(self.projected or {"mask": mask}),
            **(wanted or {}),
        }
        found, self.states = self.network.run_decoder(outputs, inputs, self.states)
        self.start = self.start + mask.sum(axis=1)
        return found


def log_softmax(logits: Floats) -> Floats:
    """Return the log-probabilities of the words: (..., V) -> (..., V)."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    found: Floats = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return found


def _session(path: Path, threads: int | None) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads or 0
    # Otherwise idle threads would keep the cores busy that the other graph or the server needs.
    options.add_session_config_entry("session.force_spinning_stop", "1")
    # The warnings of the optimizer are for authors of graphs.
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(
            str(path), sess_options=options, providers=["CPUExecutionProvider"]
        )
    except Exception as error:
        # onnxruntime raises classes of its own for each kind of broken file
        raise ValueError(f"{path} must be a graph that onnxruntime can run: {error}") from error


def _value(array: NDArray[Any]) -> Value:
    return onnxruntime.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array))
