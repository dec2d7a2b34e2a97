"""`talkconv` with a process that is killed in the middle of a step. Run by torchrun.

The process with the number DIES_RANK kills itself, as `kill -9` would, before the second batch of
step DIES_STEP. It does so only once; a file records that it has happened.
"""

import os
import signal
from pathlib import Path

from talkconv.__main__ import main
from talkconv.training.trainer import RunTrainer

training_step = RunTrainer.training_step
batches = 0


def dying_step(self, *args, **kwargs):
    global batches
    batches = batches + 1 if self.state.global_step == int(os.environ["DIES_STEP"]) else 0
    died = Path(os.environ["DIES_FILE"])
    if batches == 2 and os.environ["RANK"] == os.environ["DIES_RANK"] and not died.exists():
        died.write_text(f"at step {self.state.global_step}")
        os.kill(os.getpid(), signal.SIGKILL)
    return training_step(self, *args, **kwargs)


if __name__ == "__main__":
    RunTrainer.training_step = dying_step
    main()
