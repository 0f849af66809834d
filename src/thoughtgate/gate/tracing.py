"""Traces of a governed run, and several observers of its record told as one.

The OpenTelemetry SDK is imported only when the config names a collector. What is still
queued is exported when the process ends, after the record is closed.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from thoughtgate.config.settings import TelemetrySettings
from thoughtgate.core.record_events import Record

if TYPE_CHECKING:
    from thoughtgate.telemetry.spans import Tracer

Observer = Callable[[Record], None]


def open_tracer(settings: TelemetrySettings) -> "Tracer | None":
    """Return a tracer, when the settings ask for one.

    Raises:
        UsageError: the extra with the SDK is not installed.
    """
    wanted = settings.otlp
    if wanted is None:
        return None
    from thoughtgate.telemetry.spans import Tracer  # the extra, and only when it is asked for

    return Tracer(
        wanted.endpoint,
        headers=wanted.headers,
        service_name=wanted.service_name,
        sample_rate=wanted.sample_rate,
        resource=wanted.resource,
    )


def both(first: Observer | None, second: Observer | None) -> Observer | None:
    """Return an observer that tells two, or the one that there is."""
    if first is None or second is None:
        return second if first is None else first

    def observe(record: Record) -> None:
        first(record)
        second(record)

    return observe
