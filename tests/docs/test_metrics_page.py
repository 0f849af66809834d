"""The metrics' page has every metric, and is fresh."""

from pathlib import Path

from tools.docs_metrics import render

from thoughtgate.config.json_schema import json_schema
from thoughtgate.telemetry.metric_table import METRICS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"


def test_the_page_is_not_stale() -> None:
    assert PAGE.read_text("utf-8") == render(), "write it again: make docs"


def test_every_metric_is_on_the_page() -> None:
    page = render()
    assert all(f"| `{metric.name}` | {metric.kind} |" in page for metric in METRICS)


def test_the_log_levels_are_those_that_the_config_takes() -> None:
    (line,) = (one for one in render().splitlines() if "telemetry.log_level" in one)
    told = line.partition("telemetry.log_level: ")[2].replace("`", "").rstrip(".")
    levels = json_schema()["$defs"]["TelemetrySettings"]["properties"]["log_level"]["enum"]
    assert told.replace(" or ", ", ").split(", ") == levels
