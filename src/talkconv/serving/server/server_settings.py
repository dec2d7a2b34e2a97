"""ServerSettings: what `talkconv serve` can be told, the only home of its defaults."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ServerSettings:
    """The limits of a server. A sentence is what the network reads at once: a line or a part of it.

    >>> ServerSettings(queue=300).batch
    32
    """

    # only this machine can connect, unless told otherwise
    host: str = "127.0.0.1"
    port: int = 8000
    # clients must send it as api_key; None: anybody may ask
    api_key: str | None = None
    # pages of this origin may ask from a browser; None: only the server's own page
    allow_origin: str | None = None
    # the largest body of a request, in bytes
    max_body: int = 1_000_000
    # the most sentences of a request, and the most tokens of a sentence
    max_sentences: int = 256
    max_tokens: int = 512
    # how many sentences of all clients may wait; a request that does not fit is answered with 503
    queue: int = 1024
    # how many sentences are read together at most, and how long the first of them waits for others
    batch: int = 32
    wait_milliseconds: float = 4.0
    # seconds for a whole request, for a client to send its request, and for the requests that are
    # running when the server is told to stop
    timeout: float = 60.0
    read_timeout: float = 10.0
    drain: float = 25.0
    # open connections beyond this number are answered with 503
    connections: int = 1000

    def __post_init__(self) -> None:
        for name in ("max_body", "max_sentences", "max_tokens", "queue", "batch", "connections"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("timeout", "read_timeout"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be above 0 seconds, got {getattr(self, name)}")
        for name in ("wait_milliseconds", "drain"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")
        if not 0 <= self.port <= 65535:
            raise ValueError(f"port must be from 0 to 65535, got {self.port}")
        if self.api_key is not None and not self.api_key:
            raise ValueError("api_key must not be empty: leave it out to let anybody ask")
        if self.max_sentences > self.queue:
            raise ValueError(
                f"queue={self.queue} must hold one whole request of "
                f"max_sentences={self.max_sentences}"
            )
