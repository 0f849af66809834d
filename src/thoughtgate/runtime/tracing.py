"""Traces of a governed run: joins the tracer to whoever else observes the record.

The OpenTelemetry SDK is imported only when the config names a collector. What is still
queued is exported when the process ends, after the record is closed.
"""

from collections.abc import Callable

from thoughtgate.config.settings import TelemetrySettings
from thoughtgate.core.record import Record

Observer = Callable[[Record], None]


def with_traces(settings: TelemetrySettings, observe: Observer | None) -> Observer | None:
    """Return an observer that also traces, when the settings ask for it.

    Raises:
        UsageError: the extra with the SDK is not installed.
    """
    wanted = settings.otlp
    if wanted is None:
        return observe
    from thoughtgate.telemetry.spans import Tracer  # the extra, and only when it is asked for

    tracer = Tracer(
        wanted.endpoint,
        headers=wanted.headers,
        service_name=wanted.service_name,
        sample_rate=wanted.sample_rate,
        resource=wanted.resource,
    )
    if observe is None:
        return tracer.observe

    def both(record: Record) -> None:
        observe(record)
        tracer.observe(record)

    return both
