import torch

from talkconv.threads import use_threads


def test_threads_are_set_only_if_they_differ(monkeypatch):
    told = []
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    monkeypatch.setattr(torch, "set_num_threads", told.append)
    use_threads(None)
    use_threads(4)
    assert told == []
    use_threads(3)
    assert told == [3]
