"""Time-aware Large Kernel (TaLK) convolutions: windows that every token chooses, summed in O(n).

Shapes, here and everywhere below: B sequences, T tokens, C channels, H heads of R = C / H channels.
Batch first; "packed" sequences lie end to end in N tokens.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from talkconv.layers.blocks import DecoderBlock, EncoderBlock
    from talkconv.layers.talk_conv import TaLKConv
    from talkconv.loading import load
    from talkconv.ops import reference
    from talkconv.ops.step import TaLKState, talk_conv_step
    from talkconv.ops.talk_conv import talk_conv
    from talkconv.training.train import train

__version__ = "0.1.0"

__all__ = [
    "DecoderBlock",
    "EncoderBlock",
    "TaLKConv",
    "TaLKState",
    "load",
    "reference",
    "talk_conv",
    "talk_conv_step",
    "train",
]

# Where each public name lives. A module is imported when a name of it is first used, so that the
# command line and exported networks start without torch.
_HOMES = {
    "DecoderBlock": "talkconv.layers.blocks",
    "EncoderBlock": "talkconv.layers.blocks",
    "TaLKConv": "talkconv.layers.talk_conv",
    "TaLKState": "talkconv.ops.step",
    "load": "talkconv.loading",
    "talk_conv": "talkconv.ops.talk_conv",
    "talk_conv_step": "talkconv.ops.step",
    "train": "talkconv.training.train",
}
_MODULES = {
    "layers": "talkconv.layers",
    "models": "talkconv.models",
    "ops": "talkconv.ops",
    "reference": "talkconv.ops.reference",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES and name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        is_module = name in _MODULES
        module = import_module(_MODULES[name] if is_module else _HOMES[name])
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        # an installation for exported networks has no torch
        from talkconv.installing import install_command

        cure = install_command("torch")
        raise ImportError(f"{__name__}.{name} needs torch: {cure}", name="torch") from error
    value = module if is_module else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
