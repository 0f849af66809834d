"""One forwarded message of a batch: passes the server's response to the batch."""

from thoughtgate.errors import PeerError
from thoughtgate.front.batch import Batch
from thoughtgate.wire.message import RequestId
from thoughtgate.wire.sse import parse_event


class BatchItem:
    """Receives what the server sends in response to one message."""

    def __init__(self, batch: Batch, key: RequestId | None) -> None:
        self._batch = batch
        self._key = key

    def stream_started(self, status: int, headers: bytes) -> None:
        """Ignore the head: only the frames of the stream matter."""

    def stream_wrote(self, data: bytes) -> None:
        """Pass on an event that precedes the response."""
        message = parse_event(data).data
        if message:
            self._batch.part_said(message)

    def stream_answered(self, data: bytes, key: RequestId | None) -> None:
        """Pass on the event that answers this message or another message of the batch."""
        self._batch.part_answered(parse_event(data).data or b"", key)

    def told(self, data: bytes) -> None:
        """Pass on a message that precedes the response."""
        self._batch.part_said(data)

    def stream_ended(self) -> None:
        """Do nothing: the session has already answered requests left without a response."""

    def answered(self, data: bytes, status: int, headers: bytes) -> None:
        """Pass on the response."""
        del status, headers
        self._batch.part_answered(data, self._key)

    def passed(self, status: int, headers: bytes, body: bytes) -> None:
        """Ignore the server's HTTP response to a notification: the batch needs no reply to it."""

    def failed(self, error: PeerError, status: int = 200) -> None:
        """Report that the server did not respond."""
        del status
        self._batch.part_failed(error, self._key)

    def session_named(self, upstream: str) -> str:
        """Return no id: ``initialize`` is never part of a batch, so no session begins here."""
        del upstream
        return ""
