"""The bodies of requests and answers. Pydantic checks them, and the OpenAPI page shows them."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

Texts = str | list[str]
_KEY = Field(default=None, max_length=1000, description="The key, if the server asks for one.")


class _Request(BaseModel):
    """The common base of all requests. Unknown fields are ignored."""

    model_config = ConfigDict(strict=False, extra="ignore")

    q: Texts = Field(description="A text, or a list of texts.")
    api_key: str | None = _KEY

    @field_validator("q")
    @classmethod
    def _is_text(cls, value: Texts) -> Texts:
        for text in [value] if isinstance(value, str) else value:
            try:
                text.encode("utf-8")
            except UnicodeEncodeError:
                raise ValueError(
                    "q must be text: it has half of a character, a lone surrogate"
                ) from None
        return value


class TranslateRequest(_Request):
    """A request to translate, as clients of LibreTranslate send it."""

    source: str = Field(default="auto", description="The language of q, or auto.")
    target: str = Field(description="The language to translate to.")
    format: Literal["text", "html"] = "text"
    alternatives: int = Field(default=0, ge=0, description="How many more translations to return.")


class SummarizeRequest(_Request):
    """A request to summarize: each line of q is a text of its own."""

    alternatives: int = Field(default=0, ge=0, description="How many more summaries to return.")


class CompleteRequest(_Request):
    """A request to continue each line of q."""

    alternatives: int = Field(default=0, ge=0, description="How many more outputs to return.")
    max_length: int | None = Field(default=None, ge=1, description="The most new tokens.")
    temperature: float | None = Field(
        default=None, ge=0, le=10, description="Above 0, outputs are drawn at random."
    )
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=0)
    seed: int | None = Field(default=None, ge=0, lt=2**63, description="Of what is drawn.")


class StreamRequest(_Request):
    """A request of the page: the outputs of q while they are written, one JSON object a line."""

    alternatives: int = Field(default=0, ge=0)


class WindowsRequest(_Request):
    """A request for the windows of the network over a sentence and its output."""

    q: str = Field(max_length=10_000)
    output: str = Field(default="", max_length=10_000, description="What the network wrote for q.")


class TranslateAnswer(BaseModel):
    """Translations; lists where q was a list."""

    translatedText: Texts
    alternatives: list[Any] | None = None
    detectedLanguage: Any = None


class OutputAnswer(BaseModel):
    """Summaries or continuations; lists where q was a list."""

    outputText: Texts
    alternatives: list[Any] | None = None


class ErrorAnswer(BaseModel):
    """The answer to a request that failed."""

    error: str
