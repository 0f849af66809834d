"""The numbers of several processes as one page: what each of them counted, added up."""

import json
from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

OWN: Final = frozenset({"thoughtgate_uptime_seconds", "thoughtgate_build_info"})
"""Metrics that say what a process is; a sum of them would say nothing."""


def render_told(families: Iterable[Family]) -> bytes:
    """Return what one process tells the others of its numbers."""
    told = [
        [one.name, one.documentation, one.type, [sample[:3] for sample in one.samples]]
        for one in families
        if one.name not in OWN
    ]
    return json.dumps(told).encode()


def read_told(data: bytes) -> list[Family]:
    """Return the numbers that another process tells.

    Raises:
        ValueError: it is nothing that a process tells.
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
    """Return everybody's numbers in the text format of Prometheus, added up."""
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
    registry = CollectorRegistry()
    registry.register(_Merged(merged.values()))
    return generate_latest(registry)


class _Merged(Collector):
    """What the registry asks."""

    def __init__(self, families: Iterable[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Family]:
        """Give the sums."""
        return iter(self._families)
