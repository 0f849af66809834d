"""One message of a batch on its way: hands the server's answer to the batch."""

from thoughtgate.front.batch import Batch
from thoughtgate.wire.message import RequestId
from thoughtgate.wire.sse import parse_event


class BatchItem:
    """Owns the leg of one message."""

    def __init__(self, batch: Batch, key: RequestId | None) -> None:
        self._batch = batch
        self._key = key

    def stream_started(self, status: int, headers: bytes) -> None:
        """The frames of the stream are what matters."""

    def stream_wrote(self, data: bytes) -> None:
        """An event before the answer."""
        message = parse_event(data).data
        if message:
            self._batch.part_said(message)

    def stream_answered(self, data: bytes, key: RequestId | None) -> None:
        """The event that answers the message, or another message of the batch."""
        self._batch.part_answered(parse_event(data).data or b"", key)

    def told(self, data: bytes) -> None:
        """The server sent something that is not the answer yet."""
        self._batch.part_said(data)

    def stream_ended(self) -> None:
        """The session has already told whoever was left without an answer."""

    def answered(self, data: bytes, status: int, headers: bytes) -> None:
        """The answer."""
        del status, headers
        self._batch.part_answered(data, self._key)

    def passed(self, status: int, headers: bytes, body: bytes) -> None:
        """Nobody waits for what the server says to a notification."""

    def failed(self, kind: str, status: int = 200) -> None:
        """No answer."""
        del status
        self._batch.part_failed(kind, self._key)

    def session_named(self, upstream: str) -> str:
        """``initialize`` is never part of a batch, so no session begins here."""
        del upstream
        return ""
