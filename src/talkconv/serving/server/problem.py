"""Problem: an answer that says what a request did wrong, or that the server cannot serve it now."""


class Problem(Exception):
    """Becomes an answer with this status and {"error": message}.

    The message is for the client: it names no file of the machine and no line of the program.
    """

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        # seconds after which the client may try again
        self.retry_after = retry_after

    def headers(self) -> dict[str, str]:
        """Return the headers that go with the status."""
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
