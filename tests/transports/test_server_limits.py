"""The limits of an HTTP server."""

from thoughtgate.transports.server_limits import ServerLimits


def test_a_client_has_less_time_for_a_head_than_for_a_body() -> None:
    limits = ServerLimits()

    assert 0 < limits.head_timeout_s < limits.body_timeout_s
