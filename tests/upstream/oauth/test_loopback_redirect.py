"""The page to which the browser comes back: only the sign-in that it waits for ends the wait."""

import asyncio
from typing import Any

import pytest
from tests.support.authorization_server import Browser
from tests.support.consoles import Client
from tests.support.waiting import run_async

from thoughtgate.errors import LoginError, StoreError
from thoughtgate.upstream.oauth.loopback_redirect import LoopbackRedirect, loopback_redirect


async def _fetch(redirect: LoopbackRedirect[Any], query: str, path: str = "") -> tuple[int, str]:
    return await asyncio.to_thread(Browser().open, f"{path or redirect.uri}?{query}")


def test_the_query_of_the_right_state_is_redeemed_once() -> None:
    seen: list[str] = []

    async def finish(query: str) -> str:
        seen.append(query)
        return "signed in"

    async def scene() -> None:
        async with loopback_redirect(finish) as redirect:
            assert redirect.uri.startswith("http://127.0.0.1:")
            assert (await _fetch(redirect, "code=1&state="))[0] == 404
            redirect.state = "right"
            for query in ("", "code=1", "code=1&state=wrong", "code=1&state=right&state=right"):
                assert (await _fetch(redirect, query))[0] == 404
            wrong = redirect.uri.replace("/callback", "/other")
            assert (await _fetch(redirect, "code=1&state=right", wrong))[0] == 404
            assert (await _fetch(redirect, f"code={'1' * 20_000}&state=right"))[0] in {
                404,
                414,
                431,
            }
            assert seen == []

            status, text = await _fetch(redirect, "code=1&state=right")
            assert (status, seen) == (200, ["/callback?code=1&state=right"])
            assert "You are signed in" in text
            assert (await _fetch(redirect, "code=1&state=right"))[0] == 409
            assert await redirect.wait() == "signed in"

    run_async(scene())


def test_a_page_of_another_host_cannot_end_it() -> None:
    async def finish(query: str) -> str:
        raise AssertionError(query)

    async def scene() -> None:
        async with loopback_redirect(finish) as redirect:
            redirect.state = "right"
            port = int(redirect.uri.rpartition(":")[2].partition("/")[0])
            client, host = Client(port), {"Host": "evil.example"}
            path = "/callback?code=1&state=right"
            assert (await asyncio.to_thread(client.get, path, host)).status == 404
            sent = await asyncio.to_thread(client.send, "POST", path, b"")
            assert sent.status == 404

    run_async(scene())


def test_a_failed_sign_in_is_told_on_the_page_and_to_who_waits() -> None:
    async def finish(query: str) -> str:
        raise LoginError(f"<b>refused</b> {len(query)}")

    async def scene() -> None:
        async with loopback_redirect(finish) as redirect:
            redirect.state = "right"
            status, text = await _fetch(redirect, "error=access_denied&state=right")
            assert status == 400
            assert "&lt;b&gt;refused" in text
            with pytest.raises(LoginError, match="refused"):
                await redirect.wait()

    run_async(scene())


def test_tokens_that_cannot_be_stored_end_the_wait() -> None:
    async def finish(query: str) -> str:
        raise StoreError(f"the store is read-only {len(query)}")

    async def scene() -> None:
        async with loopback_redirect(finish) as redirect:
            redirect.state = "right"
            status, text = await _fetch(redirect, "code=1&state=right")
            assert status == 400
            assert "read-only" in text
            with pytest.raises(StoreError, match="read-only"):
                await redirect.wait()

    run_async(scene())
