"""The HTTP benchmark measures what the requirements name, against a real gateway."""

import os
from pathlib import Path

import pytest
from bench.http import KEPT, PREVIOUS, SERVE, alone, compared, held, parse_and_route, starts
from bench.load import Load, Variant, run_load
from tests.support.http_gate import Gate, config_for
from tests.support.http_upstream import HttpUpstream, text_result
from tests.support.waiting import run_async


@pytest.mark.requirement("NFR-P1")
def test_the_added_latency_and_the_cost_have_bars() -> None:
    loads = {name: [Load(1000.0, 50.0, [1.0, 2.0])] for name in ("gate", "nginx")}
    figures = {figure.name: figure for figure in compared(loads, loads)}
    assert figures["latency p99, gate"].bar == 10.0
    assert figures["CPU a governed call / nginx"].bar == 3.0
    assert figures["CPU a governed call / nginx"].value == 1.0


def test_serve_one_connection_and_an_earlier_version_are_compared() -> None:
    names = ("gate", SERVE, PREVIOUS, KEPT)
    loads = {name: [Load(1000.0, 50.0, [1.0, 2.0])] for name in names}
    figures = {figure.name: figure for figure in (*compared(loads, loads), *alone(loads))}
    assert figures[f"CPU a governed call / {KEPT}"].bar == 4.0
    assert figures[f"CPU a governed call, {SERVE} / gate"].bar == 1.3
    assert figures[f"CPU a governed call, gate / {PREVIOUS}"].value == 1.0
    assert figures[f"latency p50 at 1 connection / {KEPT}"].bar == 2.0
    assert figures[f"latency p50 at 1 connection / {PREVIOUS}"].value == 1.0


def test_the_start_of_proxy_and_serve_is_timed_up_to_a_governed_call(tmp_path: Path) -> None:
    with HttpUpstream(lambda received: text_result(received, "x")) as upstream:
        figures = {figure.name: figure for figure in starts(tmp_path, upstream.url, 1)}
    assert figures["start to first answer, proxy"].bar == 250.0
    assert figures["start to first answer, serve"].bar == 250.0


@pytest.mark.requirement("S004-NFR-002")
def test_connections_are_held_and_weighed_and_the_route_is_timed(tmp_path: Path) -> None:
    with (
        HttpUpstream(lambda received: text_result(received, "x")) as upstream,
        Gate(tmp_path, config_for(upstream.url)) as gate,
    ):
        variant = Variant("gate", gate.url, (os.getpid(),))
        measured = run_async(run_load(variant, 20, 4))
        assert len(measured.latencies_ms) == 20
        figures = {figure.name: figure for figure in held(variant, 100)}
    assert figures["connections held at once"].value == 100
    assert figures["memory a held connection"].bar == 64.0
    assert parse_and_route(100).bar == 0.5
