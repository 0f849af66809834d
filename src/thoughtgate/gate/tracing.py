"""Tracing of a run, and a way to combine two observers of the record.

The OpenTelemetry SDK is imported only if the config names a collector. Spans that are still
queued are exported when the process exits, after the record is closed.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from thoughtgate.config.settings import TelemetrySettings
from thoughtgate.core.record_events import Record

if TYPE_CHECKING:
    from thoughtgate.telemetry.spans import Tracer

Observer = Callable[[Record], None]


def open_tracer(settings: TelemetrySettings) -> "Tracer | None":
    """Return a tracer if the settings configure one.

    Raises:
        UsageError: the extra with the SDK is not installed.
    """
    wanted = settings.otlp
    if wanted is None:
        return None
    from thoughtgate.telemetry.spans import Tracer  # an optional dependency

    return Tracer(
        wanted.endpoint,
        headers=wanted.headers,
        service_name=wanted.service_name,
        sample_rate=wanted.sample_rate,
        resource=wanted.resource,
    )


def both(first: Observer | None, second: Observer | None) -> Observer | None:
    """Return an observer that calls both; one of them, or None, if there are not two."""
    if first is None or second is None:
        return second if first is None else first

    def observe(record: Record) -> None:
        first(record)
        second(record)

    return observe
