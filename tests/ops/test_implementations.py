import pytest
import torch

from talkconv import talk_conv
from talkconv.ops import implementations, library


@pytest.mark.filterwarnings("default:talkconv runs without its compiled CPU kernel:UserWarning")
def test_without_a_kernel_it_is_said_once(monkeypatch):
    monkeypatch.setattr(library, "find_kernel", lambda: None)
    implementations._warn_no_kernel.cache_clear()
    x, offsets = torch.randn(1, 5, 4), torch.rand(1, 5, 2)
    with pytest.warns(UserWarning, match="`talkconv doctor` tells why") as said:
        outs = [talk_conv(x, offsets, offsets, l_max=2, r_max=2) for _ in range(2)]
    assert len(said) == 1
    assert torch.equal(*outs)
