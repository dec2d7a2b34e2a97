from dataclasses import replace

import pytest
import torch

from talkconv.bench.correctness import Finding, check_methods, refuse_on_red
from talkconv.bench.inputs import Contestant
from talkconv.bench.methods import FLEX, METHODS, OURS
from talkconv.bench.mixer_correctness import check_mixers

# FlexAttention is compiled, which takes longer than all other tests here
EAGER = [name for name in METHODS if name != FLEX]


@pytest.mark.parametrize("name", EAGER)
def test_every_method_computes_its_definition(name):
    (finding,) = check_methods([METHODS[name]], torch.float32)
    assert finding.is_right, finding.why


@pytest.mark.slow
def test_flex_attention_computes_its_definition():
    (finding,) = check_methods([METHODS[FLEX]], torch.float32)
    if not finding.runs:
        pytest.skip(f"FlexAttention does not run here: {finding.why}")
    assert finding.is_right, finding.why


def test_ours_is_right_in_bfloat16_too():
    (finding,) = check_methods([METHODS[OURS]], torch.bfloat16)
    assert finding.is_right, finding.why


def changed(change):
    """Return our method with its contestant changed."""
    method = METHODS[OURS]
    return replace(method, make=lambda inputs: change(method.make(inputs)))


def scaled(contestant):
    function = contestant.function
    return Contestant(lambda *t: 1.001 * function(*t), contestant.tensors, contestant.definition)


def wrong_gradient(contestant):
    function = contestant.function
    return Contestant(
        lambda x, left, right: function(x, left.detach() + 0 * left, right),
        contestant.tensors,
        contestant.definition,
    )


def nothing(contestant):
    return Contestant(
        lambda *t: contestant.function(*t) * float("nan"), contestant.tensors, contestant.definition
    )


@pytest.mark.parametrize("change", [scaled, wrong_gradient, nothing])
def test_a_wrong_output_or_gradient_is_refused(change):
    findings = check_methods([changed(change)], torch.float32)
    with pytest.raises(ValueError, match=r"contestants must compute.*\nTaLK: it is off by"):
        refuse_on_red(findings)


def test_what_cannot_run_here_is_not_wrong():
    def broken(contestant):
        raise NotImplementedError("no kernel for this dtype")

    (finding,) = check_methods([changed(broken)], torch.float32)
    assert not finding.runs
    assert finding.why == "no kernel for this dtype"
    refuse_on_red([finding, Finding("TaLK", is_right=True)])


def test_mixers_compute_their_definitions():
    findings = check_mixers()
    assert len(findings) == 8
    assert all(finding.is_right for finding in findings), findings


def test_a_wrong_mixer_is_found(monkeypatch):
    from talkconv.layers.talk_conv import TaLKConv

    original = TaLKConv._convolve
    monkeypatch.setattr(TaLKConv, "_convolve", lambda *a, **k: 1.001 * original(*a, **k))
    assert [each.name for each in check_mixers() if not each.is_right] == [
        "TaLK in encoders",
        "TaLK in decoders",
    ]
