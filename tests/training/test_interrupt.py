import os
import signal

import pytest

from talkconv.training.interrupt import Interrupt


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_is_noted_and_the_second_stops_at_once(number):
    said = []
    before = signal.getsignal(number)
    with Interrupt(lambda: said.append("stopping")) as interrupt:
        assert not interrupt.requested
        os.kill(os.getpid(), number)
        assert interrupt.requested
        assert said == ["stopping"]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


def test_a_patient_process_ignores_the_second_signal():
    said = []
    with Interrupt(lambda: said.append("stopping"), patient=True) as interrupt:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupt.requested
    assert said == ["stopping"]
