"""One message of a batch hands its answer to the batch."""

from thoughtgate.errors import PeerError, upstream_error
from thoughtgate.front.batch_item import BatchItem


class _Batch:
    def __init__(self) -> None:
        self.told: list[tuple[str, object]] = []

    def part_said(self, data: bytes) -> None:
        self.told.append(("said", data))

    def part_answered(self, data: bytes, key: object) -> None:
        self.told.append(("answered", (data[:1], key)))

    def part_failed(self, error: PeerError, key: object) -> None:
        self.told.append((error.cause, key))


def test_answers_and_what_comes_before_them_are_told_apart() -> None:
    batch = _Batch()
    part = BatchItem(batch, 5)  # type: ignore[arg-type]  # a stand-in that listens
    part.stream_started(200, b"")
    part.stream_wrote(b": comment\n\n")
    part.stream_wrote(b'data: {"method":"notifications/x"}\n\n')
    part.stream_answered(b'data: {"id":5,"result":{"method":"odd"}}\n\n', 5)
    part.told(b"note")
    part.stream_ended()
    part.passed(202, b"", b"")
    part.answered(b"{}", 200, b"")
    part.failed(upstream_error("answer_timeout"))
    assert part.session_named("x") == ""
    assert batch.told == [
        ("said", b'{"method":"notifications/x"}'),
        ("answered", (b"{", 5)),
        ("said", b"note"),
        ("answered", (b"{", 5)),
        ("answer_timeout", 5),
    ]
