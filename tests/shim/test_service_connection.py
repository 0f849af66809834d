"""The link to the service: whoever asks is told, whatever the other side does."""

import os
import select
import signal
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.raw_service import Answerer, RawService, reply
from tests.support.waiting import reap, wait_for

from thoughtgate.core.events import Event
from thoughtgate.gate.clock import monotonic
from thoughtgate.gate.run_file import is_stopped
from thoughtgate.shim.service_connection import MAX_REPLY, Link, parse_reply


def _drive(link: Link, said: list[tuple[int, bytes]], wanted: int, timeout: float = 10.0) -> None:
    deadline = time.monotonic() + timeout
    while len(said) < wanted and time.monotonic() < deadline:
        if link.descriptor < 0:
            return
        poll = select.poll()
        poll.register(link.descriptor, link.mask)
        for _, mask in poll.poll(50):
            link.ready(mask)
        link.expire(monotonic())


def _exchange(
    answer: Answerer, bodies: list[bytes], patience: float = 10.0
) -> list[tuple[int, bytes]]:
    said: list[tuple[int, bytes]] = []

    def told(status: int, body: bytes) -> list[Event]:
        said.append((status, body))
        return []

    with RawService(answer) as service:
        run = service.run()
        link = Link(run.host, run.port, run.token)
        for body in bodies:
            link.request("POST", "/x", body, told, monotonic() + patience)
        _drive(link, said, len(bodies))
        link.close()
    return said


def test_answers_come_back_in_order_over_one_connection() -> None:
    said = _exchange(lambda _, body: reply(b"<%b>" % body), [b"1", b"2", b"3"])

    assert said == [(200, b"<1>"), (200, b"<2>"), (200, b"<3>")]


def test_the_token_and_the_host_go_with_every_request() -> None:
    heads: list[bytes] = []

    def answer(head: bytes, body: bytes) -> bytes:
        heads.append(head)
        return reply(body)

    _exchange(answer, [b"1", b"2"])

    assert len(heads) == 2
    assert all(b"Authorization: Bearer token" in head for head in heads)
    assert all(b"Host: 127.0.0.1:" in head for head in heads)


def test_a_large_body_and_a_large_answer_pass_whole() -> None:
    big = b"x" * (5 * 1024 * 1024)

    assert _exchange(lambda _, body: reply(body), [big]) == [(200, big)]


@pytest.mark.parametrize(
    "answer",
    [
        None,
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % (MAX_REPLY + 1),
        b"x" * 100_000,
    ],
)
def test_a_strange_answer_is_no_answer_for_all_who_wait(answer: bytes | None) -> None:
    assert _exchange(lambda _head, _body: answer, [b"1", b"2"]) == [(0, b""), (0, b"")]


def test_a_silent_service_is_given_up_on_time() -> None:
    assert _exchange(lambda _head, _body: b"", [b"1"], patience=0.1) == [(0, b"")]


def test_nobody_listening_is_told_at_once_or_by_the_poll() -> None:
    said: list[int] = []

    def told(status: int, body: bytes) -> list[Event]:
        del body
        said.append(status)
        return []

    link = Link("127.0.0.1", 1, "token")
    link.request("GET", "/healthz", b"", told, monotonic() + 5)
    _drive(link, [], 1, 1.0)

    assert said == [0]


def test_a_link_connects_again_after_it_broke() -> None:
    answers = iter([None, reply(b"back")])
    said: list[tuple[int, bytes]] = []

    def told(status: int, body: bytes) -> list[Event]:
        said.append((status, body))
        return []

    with RawService(lambda _head, _body: next(answers)) as service:
        run = service.run()
        link = Link(run.host, run.port, run.token)
        for wanted in (1, 2):
            link.request("POST", "/x", b"", told, monotonic() + 5)
            _drive(link, said, wanted)
        link.close()

    assert said == [(0, b""), (200, b"back")]


def test_time_that_nobody_had_is_not_held_against_the_service() -> None:
    said: list[int] = []

    def told(status: int, body: bytes) -> list[Event]:
        del body
        said.append(status)
        return []

    with RawService(lambda _head, _body: b"") as service:
        run = service.run()
        link = Link(run.host, run.port, run.token)
        link.request("POST", "/x", b"", told, 10.0)
        link.extend(100.0)
        assert link.expire(100.0) == []
        assert said == []
        link.expire(111.0)
        assert said == [0]


@given(st.binary(max_size=300))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_an_answer_or_none_and_never_a_fault(data: bytes) -> None:
    found = parse_reply(bytearray(data))

    assert found is None or found[2] <= len(data)


def test_the_reply_of_a_stopped_service_is_awaited() -> None:
    said: list[int] = []

    def told(status: int, body: bytes) -> list[Event]:
        said.append(status)
        return []

    service = os.posix_spawnp("sleep", ["sleep", "60"], {"PATH": os.environ["PATH"]})
    os.kill(service, signal.SIGSTOP)
    wait_for(lambda: is_stopped(service), what="the stop")
    with RawService(lambda _, body: reply(body)) as raw:
        run = raw.run()
        link = Link(run.host, run.port, run.token)
        link.request("POST", "/x", b"", told, monotonic() - 1.0)
        link.expire(monotonic(), service)
        assert said == []
        _drive(link, said, 1)  # type: ignore[arg-type]  # only its length counts
        assert said == [200]
        os.kill(service, signal.SIGKILL)
        reap(service)
        link.request("POST", "/x", b"", told, monotonic() - 1.0)
        link.expire(monotonic(), service)
        assert said == [200, 0]
        link.close()
