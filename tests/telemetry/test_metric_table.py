import json
import re
from pathlib import Path

from tests.support.commands import ROOT

from thoughtgate.telemetry.metric_table import METRICS

DASHBOARD = ROOT / "deploy" / "grafana" / "thoughtgate.json"
_NAME = re.compile(r"\b(?:thoughtgate|mcp)_[a-z_]+")
_LABELS = re.compile(r"by \(([a-z_, ]+)\)")


def exposed() -> set[str]:
    names = set()
    for metric in METRICS:
        names.add(metric.name)
        if metric.kind == "histogram":
            names |= {f"{metric.name}_{part}" for part in ("bucket", "sum", "count")}
    return names


def expressions(dashboard: Path) -> list[str]:
    panels = json.loads(dashboard.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", [])]


def test_names_are_distinct_and_well_formed() -> None:
    names = [metric.name for metric in METRICS]
    assert len(names) == len(set(names))
    for metric in METRICS:
        assert (metric.kind == "counter") == metric.name.endswith("_total")
        assert (metric.kind == "histogram") == bool(metric.buckets)
        assert metric.help.endswith(".")


def test_the_dashboard_shows_only_metrics_that_exist() -> None:
    shown = expressions(DASHBOARD)
    assert len(shown) >= 12
    for expression in shown:
        used = set(_NAME.findall(expression))
        assert used, expression
        assert used <= exposed(), expression


def test_the_dashboard_groups_only_by_labels_that_exist() -> None:
    labels = {label for metric in METRICS for label in metric.labels} | {"le"}
    for expression in expressions(DASHBOARD):
        for group in _LABELS.findall(expression):
            assert {name.strip() for name in group.split(",")} <= labels
