"""The last lines of a server."""

from thoughtgate.upstream.server_log import MAX_LINE, ServerLog


def test_lines_are_put_together_from_chunks() -> None:
    log = ServerLog()

    assert log.take(b"one\ntw") == ["one"]
    assert log.take(b"o\r\nthree") == ["two"]
    assert log.tail(10) == ["one", "two"]


def test_only_the_last_lines_are_kept() -> None:
    log = ServerLog(kept=3)
    log.take(b"1\n2\n3\n4\n5\n")
    log.add("ours")

    assert log.tail(10) == ["4", "5", "ours"]
    assert log.tail(1) == ["ours"]
    assert log.tail(0) == []


def test_a_line_cannot_steer_a_terminal_and_is_bounded() -> None:
    log = ServerLog()
    log.take(b"\x1b[31mred\xff\n" + b"y" * 10_000 + b"\n")

    assert log.tail(2)[0] == "[U+001B][31mred�"
    assert len(log.tail(1)[0]) == MAX_LINE
