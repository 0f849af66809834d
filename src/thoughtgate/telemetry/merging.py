"""Merging the metrics of several processes into one page by adding them up."""

import json
from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

OWN: Final = frozenset({"thoughtgate_uptime_seconds", "thoughtgate_build_info"})
"""Metrics that describe one process; adding them up would be meaningless."""


def encode_metrics(families: Iterable[Family]) -> bytes:
    """Encode the metrics of one process for another one."""
    told = [
        [one.name, one.documentation, one.type, [sample[:3] for sample in one.samples]]
        for one in families
        if one.name not in OWN
    ]
    return json.dumps(told).encode()


def decode_metrics(data: bytes) -> list[Family]:
    """Decode the metrics of another process.

    Raises:
        ValueError: the data is not in the format of ``encode_metrics``.
    """
    families = []
    try:
        for name, documentation, kind, samples in json.loads(data):
            family = Family(name, documentation, kind)
            for sample, labels, value in samples:
                family.add_sample(sample, dict(labels), float(value))
            families.append(family)
    except TypeError as error:
        raise ValueError(str(error)) from None
    return families


def render_merged(own: Iterable[Family], others: Iterable[Iterable[Family]]) -> bytes:
    """Return the sums of all metrics in the Prometheus text format."""
    merged: dict[str, Family] = {}
    numbers: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
    for families in (own, *others):
        for family in families:
            merged.setdefault(family.name, Family(family.name, family.documentation, family.type))
            counted = numbers.setdefault(family.name, {})
            for name, labels, value, *_ in family.samples:
                key = (name, tuple(labels.items()))
                counted[key] = counted.get(key, 0.0) + value
    for family_name, counted in numbers.items():
        for (name, pairs), value in counted.items():
            merged[family_name].add_sample(name, dict(pairs), value)
    return generate_latest(registry_of(merged.values))


def registry_of(collect: Callable[[], Iterable[Family]]) -> CollectorRegistry:
    """Return a registry of the metrics that a function returns on each scrape."""
    registry = CollectorRegistry()
    registry.register(_Collected(collect))
    return registry


class _Collected(Collector):
    """Provides metrics to a registry."""

    def __init__(self, collect: Callable[[], Iterable[Family]]) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Family]:
        """Return the metrics."""
        return self._collect()
