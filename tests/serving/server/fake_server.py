"""Runs a server around FakeEngine in a process of its own, and writes what its network has read.

`python -m tests.serving.server.fake_server SECONDS` runs until a signal stops it. Its network takes
so many seconds to open.
"""

import json
import sys
import time
from pathlib import Path

from talkconv.serving.server import serve
from talkconv.serving.server.server_settings import ServerSettings
from tests.serving.server.cases import FakeEngine

if __name__ == "__main__":
    engine = FakeEngine(work=lambda batch: time.sleep(0.01))

    def open_engine(*_):
        print("opening", file=sys.stderr, flush=True)
        time.sleep(float(sys.argv[1]))
        return engine

    serve.open_engine = open_engine
    serve.serve(Path("fake"), ServerSettings(port=0, batch=4))
    json.dump([text for batch in engine.batches for text in batch], sys.stdout)
