"""A whole HTTP response, collected up to a limit."""

import pytest
from tests.support.waiting import run_async

from thoughtgate.errors import PeerError
from thoughtgate.transports.collected_response import Collector, Response
from thoughtgate.transports.http_heads import ResponseHead


def test_a_response_is_complete_at_its_end() -> None:
    async def main() -> Response:
        collector = Collector(10)
        collector.started(ResponseHead(200, [(b"x", b"1"), (b"x", b"2")]))
        collector.received(b"one")
        collector.received(b"two")
        collector.ended()
        collector.failed(PeerError("internal_error", "too late to matter"))
        return await collector.response

    response = run_async(main())

    assert (response.status, response.body) == (200, b"onetwo")
    assert response.header(b"x") == b"1"
    assert response.header(b"y") is None


def test_a_response_over_the_limit_fails() -> None:
    async def main() -> None:
        collector = Collector(5)
        collector.received(b"too long")
        collector.ended()
        with pytest.raises(PeerError, match="too large"):
            await collector.response

    run_async(main())
