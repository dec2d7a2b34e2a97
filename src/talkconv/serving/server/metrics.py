"""The metrics of a server, in the text format of Prometheus."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class ServerMetrics:
    """The numbers of one server, in a registry of its own."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "talkconv_requests",
            "Requests that were answered.",
            ("path", "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "talkconv_request_seconds",
            "Seconds from a request to its answer.",
            ("path",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.sentences = Counter(
            "talkconv_sentences", "Sentences that were read.", registry=self.registry
        )
        self.batch_sentences = Histogram(
            "talkconv_batch_sentences",
            "Sentences that were read together.",
            buckets=(1, 2, 4, 8, 16, 32, 64, 128),
            registry=self.registry,
        )
        self.batch_seconds = Histogram(
            "talkconv_batch_seconds",
            "Seconds that a batch took.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.waiting = Gauge(
            "talkconv_waiting_sentences", "Sentences in the queue.", registry=self.registry
        )

    def on_batch(self, sentences: int, seconds: float) -> None:
        """Count a batch that was answered."""
        self.sentences.inc(sentences)
        self.batch_sentences.observe(sentences)
        self.batch_seconds.observe(seconds)

    def text(self) -> bytes:
        """Return all numbers as Prometheus reads them."""
        return bytes(generate_latest(self.registry))
