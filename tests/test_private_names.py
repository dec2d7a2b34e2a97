"""Lists every private name of another package that `src/` uses, with its reason.

Private names may change with any release of their package. This list shows what that could break;
a name that is not on it fails, and so does an entry that nothing uses any more.
"""

import ast
from pathlib import Path
from typing import NamedTuple

import pytest

import talkconv
from tests.private_names import Package, Use


class Entry(NamedTuple):
    """The reason for a private name, and what happens if its package removes or renames it."""

    reason: str
    without_it: str


IN_EVERY_CALL = "Calls of talk_conv raise an AttributeError, and every test of the operation fails."
NEVER_CALLED = "transformers no longer calls the override, and the tests named after it fail."

ALLOWED = {
    # torch: which road a call of the operation takes
    "torch._C._are_functorch_transforms_active": Entry(
        "torch.func's transforms need the autograd.Function, not the registered operator.",
        IN_EVERY_CALL,
    ),
    "torch._C._len_torch_dispatch_stack": Entry(
        "A dispatch mode must see the registered operator.", IN_EVERY_CALL
    ),
    # transformers: what a network is to it
    "transformers.PreTrainedModel._init_weights": Entry(
        "This is the documented hook for the initial weights of a network.", NEVER_CALLED
    ),
    "transformers.PreTrainedModel._no_split_modules": Entry(
        "This is the documented list of modules that stay on one device.", NEVER_CALLED
    ),
    "transformers.PreTrainedModel._tied_weights_keys": Entry(
        "This is the documented list of weights that share their memory.", NEVER_CALLED
    ),
    "transformers.GenerationMixin._is_stateful": Entry(
        "It says that a cache cannot go back as far as assisted generation may ask.", NEVER_CALLED
    ),
    "*._is_hf_initialized": Entry(
        "A padding row that was loaded must not be set to zero.",
        "The padding row of a loaded network becomes zero, and the tests of loading fail.",
    ),
    # other packages
    "os._exit": Entry(
        "It is documented, and the only way to end a process at once from one of its threads.",
        "A measurement raises an AttributeError, and the tests of processes of their own fail.",
    ),
    "*._extract_corpus_statistics": Entry(
        "Confidence intervals need the statistics of each line from sacreBLEU.",
        "`talkconv evaluate` raises an AttributeError, and the tests of BLEU fail.",
    ),
    "nltk.PorterStemmer._step4": Entry(
        "ROUGE-1.5.5 removes suffixes in step 4 that Porter's algorithm keeps.",
        "ROUGE stems as the published algorithm does, and the tests of stems fail.",
    ),
    "*._compute_score_from_stats": Entry(
        "Confidence intervals need scores from sums of such statistics.",
        "`talkconv evaluate` raises an AttributeError, and the tests of BLEU fail.",
    ),
}


@pytest.fixture(scope="module")
def uses() -> list[Use]:
    return Package.of(Path(talkconv.__file__).parent).uses()


def test_every_private_name_in_use_is_on_the_list(uses):
    new = [f"{use.file}:{use.line} uses {use.name}" for use in uses if use.name not in ALLOWED]
    assert not new, "\n".join(["use a public name, or give the reason in ALLOWED:", *new])


def test_every_name_on_the_list_is_in_use(uses):
    unused = sorted(set(ALLOWED) - {use.name for use in uses})
    assert not unused, f"remove from ALLOWED what nothing uses any more: {unused}"


@pytest.mark.parametrize("name", ALLOWED)
def test_every_name_on_the_list_has_its_reason(name):
    for sentence in ALLOWED[name]:
        assert len(sentence.split()) >= 4
        assert sentence.endswith(".")


def names_in(text: str) -> set[str]:
    return {use.name for use in Package("talkconv", {"mine.py": ast.parse(text)}).uses()}


TRAINER = "from transformers import Trainer\nclass Mine(Trainer):\n    "


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import torch\ntorch._C._is_tracing()", "torch._C._is_tracing"),
        ("from torch import _C", "torch._C"),
        ("import torch._dynamo", "torch._dynamo"),
        (
            "from torch import autograd as a\na.forward_ad._level",
            "torch.autograd.forward_ad._level",
        ),
        ("def ask(tensor): return tensor._is_zerotensor()", "*._is_zerotensor"),
        ("def ask(tensor): return getattr(tensor, '_x', 0)", "*._x"),
        ("def call(function): function(_internal=1)", "*(_internal=)"),
        (f"{TRAINER}def _save(self): pass", "transformers.Trainer._save"),
        (f"{TRAINER}def go(self): self._save()", "transformers.Trainer._save"),
        (f"{TRAINER}def go(self): super()._save()", "transformers.Trainer._save"),
        (f"{TRAINER}def go(self): self._tr_loss = 0", "transformers.Trainer._tr_loss"),
    ],
)
def test_private_names_are_found(text, name):
    assert names_in(text) == {name}


@pytest.mark.parametrize(
    "text",
    [
        "import torch\ntorch.compile, torch.__version__",
        "from talkconv.ops import _anything",
        "def _mine(_x): return _mine(_x=_x)",
        "class Mine:\n    def __init__(self): self._x = 0\ndef ask(mine): return mine._x",
        f"{TRAINER}def go(self): self._surely_not_theirs = 1",
        "def change(edge): return edge._replace(x=1)",
        "class Call:\n    _fields_ = []",
    ],
)
def test_other_names_are_not(text):
    assert names_in(text) == set()
