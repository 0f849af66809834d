"""What is open between a client and the hub."""

import asyncio
import json
from typing import Any

from tests.support.hub_parts import connect
from tests.support.waiting import run_async

from thoughtgate.gate.outbox import Outbox
from thoughtgate.hub.client import MAX_OPEN, Client, Listen


def client() -> Client:
    return connect(Outbox(lambda: True, lambda _: None))[0]


def test_ids_are_taken_while_anything_of_them_is_open() -> None:
    one: Any = client()
    one.work["a"] = object()
    one.routes[1] = object()
    one.listens["l"] = Listen({}, {})

    assert [one.is_open(ident) for ident in ("a", 1, "l", "1", "b")] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_a_client_with_too_much_open_is_full() -> None:
    one: Any = client()
    assert not one.is_full
    one.routes.update((number, None) for number in range(MAX_OPEN))
    assert one.is_full


def test_questions_get_ids_of_their_own() -> None:
    one = client()

    assert [one.next_question(), one.next_question()] == ["thoughtgate-1", "thoughtgate-2"]


def test_an_introduction_is_kept_as_far_as_it_is_sound() -> None:
    async def main() -> None:
        one = client()
        one.introduce("nonsense", {"name": "x"})
        assert (one.capabilities, one.info) == ({}, {"name": "x"})
        one.introduce({"roots": {}}, None)
        assert (one.capabilities, one.info) == ({"roots": {}}, {"name": "x"})
        assert one.introduced.is_set()

    run_async(main())


def test_replies_and_notices_are_told_apart() -> None:
    one, frames = connect(Outbox(lambda: True, lambda _: None))
    one.reply(b"a", 1)
    one.tell(b"b", None)

    assert frames.replies == [(b"a", 1)]
    assert frames.told_frames == [(b"b", None)]


def test_a_request_that_the_hub_works_on_is_answered_when_its_client_is_stopped() -> None:
    async def main() -> None:
        one, frames = connect(Outbox(lambda: True, lambda _: None))
        one.work[7] = task = asyncio.ensure_future(asyncio.sleep(60))
        one.stop("the session has ended", 0.0)
        assert await asyncio.wait_for(asyncio.gather(task, return_exceptions=True), 10)
        assert task.cancelled()
        ((reply, ident),) = frames.replies
        error = json.loads(reply)["error"]
        assert (ident, error["data"]["reason"]) == (7, "the session has ended")
        assert error["data"]["kind"] == "upstream_connection_failed"

    run_async(main())
