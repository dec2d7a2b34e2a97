"""Turns requests into sentences for the network, and its outputs into answers."""

import asyncio
import html
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from talkconv.conventions import LANGUAGE_MODELLING, TRANSLATION
from talkconv.generation.text_generator import Output
from talkconv.report.looks import DecoderLook, Look
from talkconv.serving.server.batcher import Batcher, Job, answers_of
from talkconv.serving.server.engine import Engine, LookRequest, Sentence, WriteOptions
from talkconv.serving.server.metrics import ServerMetrics
from talkconv.serving.server.problem import Problem
from talkconv.serving.server.server_settings import ServerSettings
from talkconv.serving.server.text_parts import (
    TextParts,
    TooManyParts,
    html_parts,
    sentences_of,
    whole_lines,
)

_LOG = logging.getLogger("talkconv.serve")
_LOOK = "look"


@dataclass(frozen=True)
class _Prepared:
    """The parts of each text, and the ids of all their sentences."""

    texts: list[TextParts]
    sources: list[list[int]]


class Service:
    """Answers requests with one network. All methods run in the loop of the server."""

    def __init__(self, engine: Engine, settings: ServerSettings) -> None:
        self.engine = engine
        self.settings = settings
        self.metrics = ServerMetrics()
        # one thread runs the network, another one splits and tokenizes text
        self._network = ThreadPoolExecutor(1, thread_name_prefix="network")
        self._text = ThreadPoolExecutor(1, thread_name_prefix="text")
        self.batcher = Batcher(
            engine.run,
            self._network,
            queue=settings.queue,
            batch=settings.batch,
            wait=settings.wait_milliseconds / 1000,
            on_batch=self.metrics.on_batch,
        )
        self.metrics.waiting.set_function(lambda: self.batcher.waiting)

    @property
    def task(self) -> str:
        """The task of the network."""
        return self.engine.card.task

    def close(self) -> None:
        """Refuse new requests; those that were accepted are still answered."""
        self.batcher.close()

    def stop(self) -> None:
        """Free the threads."""
        self._network.shutdown(wait=False, cancel_futures=True)
        self._text.shutdown(wait=False, cancel_futures=True)

    async def write(
        self, q: str | list[str], options: WriteOptions, *, is_html: bool = False
    ) -> tuple[Any, list[Any]]:
        """Return the outputs for q and the n - 1 alternatives: lists if q is a list."""
        self._check(options)
        texts = [q] if isinstance(q, str) else q
        prepared = await self._prepare(texts, is_html)
        jobs = [Job(options, Sentence(ids), len(ids)) for ids in prepared.sources]
        self.batcher.submit(jobs)
        outputs = await answers_of(jobs)
        filled = [
            [self._filled(parts, found, n, is_html) for n in range(options.n_best)]
            for parts, found in _shared(prepared.texts, outputs)
        ]
        best = [each[0] for each in filled]
        others = [each[1:] for each in filled]
        return (best[0], others[0]) if isinstance(q, str) else (best, others)

    async def stream(self, q: str, options: WriteOptions) -> AsyncIterator[dict[str, Any]]:
        """Yield what is written for each sentence of q as it comes, then the outputs with scores.

        The first object has the parts of the text, so that a reader can put the outputs in place.
        """
        self._check(options)
        prepared = await self._prepare([q], is_html=False)
        news: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        jobs = []
        for number, ids in enumerate(prepared.sources):
            tell = partial(_tell, loop, news, number)
            jobs.append(Job(options, Sentence(ids, tell), len(ids)))
        self.batcher.submit(jobs)
        try:
            yield {"parts": prepared.texts[0].parts}
            for number, job in enumerate(jobs):
                job.future.add_done_callback(partial(_tell_end, news, number))
            left = len(jobs)
            while left:
                item = await news.get()
                if "error" in item:
                    raise Problem(503, item["error"])
                left -= "outputs" in item
                yield item
        finally:
            for job in jobs:
                job.future.cancel()

    async def look(self, text: str, output: str) -> Look | DecoderLook:
        """Return the windows of the network over a sentence and its output."""
        if not self.engine.has_windows:
            raise Problem(404, "this network has no windows: its mixers are not TaLK convolutions")
        source = await self._in_text_thread(lambda: self._ids(text))
        target = await self._in_text_thread(lambda: self.engine.encode_output(output))
        if len(target) > self.settings.max_tokens:
            raise Problem(413, f"an output must have at most {self.settings.max_tokens} tokens")
        job = Job(_LOOK, LookRequest(text, source, target), len(source))
        self.batcher.submit([job])
        (found,) = await answers_of([job])
        look: Look | DecoderLook = found
        return look

    def _check(self, options: WriteOptions) -> None:
        try:
            self.engine.check(options)
        except ValueError as error:
            raise Problem(400, str(error)) from None

    async def _prepare(self, texts: Sequence[str], is_html: bool) -> _Prepared:
        if len(texts) > self.settings.max_sentences:
            raise Problem(413, f"q must have at most {self.settings.max_sentences} texts")
        prepared: _Prepared = await self._in_text_thread(lambda: self._split(texts, is_html))
        return prepared

    async def _in_text_thread(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._text, work)

    def _split(self, texts: Sequence[str], is_html: bool) -> _Prepared:
        found: list[TextParts] = []
        left = self.settings.max_sentences
        try:
            for text in texts:
                found.append(self._parts(text, is_html, left))
                left -= len(found[-1].sentences)
                if left < 0:
                    raise TooManyParts
        except TooManyParts:
            raise Problem(
                413, f"a request must have at most {self.settings.max_sentences} sentences"
            ) from None
        return _Prepared(found, [self._ids(line) for parts in found for line in parts.sentences])

    def _parts(self, text: str, is_html: bool, most: int) -> TextParts:
        lang = self.engine.card.source_lang or "en"
        if is_html:
            return html_parts(text, lang, most)
        if self.task == TRANSLATION:
            return sentences_of(text, lang, most)
        return whole_lines(text, most)

    def _ids(self, sentence: str) -> list[int]:
        # tokens of more than 64 characters are rare: much longer sentences need not be tokenized
        most = min(self.settings.max_tokens, self.engine.model.settings.max_source_tokens)
        ids = self.engine.encode(sentence) if len(sentence) <= 64 * most else [0] * (most + 1)
        if len(ids) > most:
            raise Problem(
                413, f"a sentence must have at most {most} tokens: {sentence[:40]!r}... has more"
            )
        return ids

    def _filled(
        self, parts: TextParts, outputs: Sequence[list[Output]], n: int, is_html: bool
    ) -> str:
        texts = [each[n].text for each in outputs]
        if self.task == LANGUAGE_MODELLING:
            # a continuation stands where its line ends
            texts = [text.strip() for text in texts]
        return parts.filled(
            [html.escape(text, quote=False) for text in texts] if is_html else texts
        )


def drawn_seed(temperature: float | None, seed: int | None) -> int | None:
    """Return the seed of a request that draws samples: its own, or a new one."""
    if not temperature:
        return None
    return secrets.randbits(63) if seed is None else seed


def _shared(
    texts: Sequence[TextParts], outputs: Sequence[list[Output]]
) -> list[tuple[TextParts, Sequence[list[Output]]]]:
    """Return each text with the outputs of its own sentences."""
    found, begin = [], 0
    for parts in texts:
        end = begin + len(parts.sentences)
        found.append((parts, outputs[begin:end]))
        begin = end
    return found


def _tell(
    loop: asyncio.AbstractEventLoop, news: "asyncio.Queue[dict[str, Any]]", number: int, text: str
) -> None:
    """Pass a text from the thread of the network on to the loop of the server."""
    loop.call_soon_threadsafe(news.put_nowait, {"sentence": number, "text": text})


def _tell_end(
    news: "asyncio.Queue[dict[str, Any]]", number: int, future: "asyncio.Future[Any]"
) -> None:
    error = None if future.cancelled() else future.exception()
    if error is not None:
        _LOG.error("a sentence failed", exc_info=error)
    if future.cancelled() or error is not None:
        news.put_nowait({"error": "the sentence could not be answered: try again"})
        return
    outputs = [{"text": each.text, "score": round(each.score, 4)} for each in future.result()]
    news.put_nowait({"sentence": number, "outputs": outputs})
