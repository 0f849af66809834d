"""The authorization server and the protected server of the tests of logins."""

from collections.abc import Iterator

import pytest
from tests.support.authorization_server import AuthorizationServer, ProtectedServer


@pytest.fixture(scope="module")
def issuer() -> Iterator[AuthorizationServer]:
    with AuthorizationServer() as server:
        yield server


@pytest.fixture(scope="module")
def protected(issuer: AuthorizationServer) -> Iterator[ProtectedServer]:
    with ProtectedServer(issuer.url) as server:
        yield server
