"""A gate before a small server, shared by the tests of a module that need nothing else."""

from collections.abc import Iterator

import pytest
from tests.support.http_gate import Gate, config_for
from tests.support.http_upstream import HttpUpstream, small_server


@pytest.fixture(scope="module")
def running_upstream() -> Iterator[HttpUpstream]:
    with HttpUpstream(small_server) as running:
        yield running


@pytest.fixture(scope="module")
def running_gate(
    running_upstream: HttpUpstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Gate]:
    rules = "rules:\n  - {tool: 'delete_*', action: deny, reason: private words}\n"
    listen = "listen: {transport: http, max_body: 2000, max_batch: 5}\n"
    config = config_for(running_upstream.url, rules + listen, server=", expose: {block: [secret]}")
    with Gate(tmp_path_factory.mktemp("gate"), config) as running:
        yield running


@pytest.fixture
def upstream(running_upstream: HttpUpstream) -> HttpUpstream:
    """The server, as if it had just been started."""
    running_upstream.received.clear()
    running_upstream.script = small_server
    return running_upstream


@pytest.fixture
def gate(running_gate: Gate, upstream: HttpUpstream) -> Gate:
    """The gate; what it has on record stays."""
    del upstream
    return running_gate
