"""Both kinds of backend offer what an endpoint needs."""

import inspect

import pytest

from thoughtgate.front.backend import Backend
from thoughtgate.front.transparent import TransparentBackend
from thoughtgate.hub.backend import HubBackend

OPERATIONS = [
    name
    for name, member in vars(Backend).items()
    if inspect.isfunction(member) and not name.startswith("_")
]


@pytest.mark.parametrize("kind", [TransparentBackend, HubBackend])
def test_a_backend_has_every_operation_with_the_same_parameters(kind: type) -> None:
    assert OPERATIONS
    for name in OPERATIONS:
        wanted = list(inspect.signature(getattr(Backend, name)).parameters)
        assert list(inspect.signature(getattr(kind, name)).parameters) == wanted, name
