"""Plots: valid SVG, nothing of a name becomes markup, no style of their own."""

from xml.etree import ElementTree as ET

import pytest

from thoughtgate.web.plots import Curve, plot_curves, plot_over_time, plot_ranking

SVG = "{http://www.w3.org/2000/svg}"


def parsed(text: str) -> ET.Element:
    return ET.fromstring(text)


def address(at: float) -> str:
    return f"/at/{at:.0f}"


def test_calls_over_time_are_stacked_by_verdict() -> None:
    counts = [
        (0.0, "ALLOW", 3),
        (0.0, "BLOCK", 1),
        (60.0, "HOLD", 2),
        (60.0, "ODD", 1),
        (9999.0, "ALLOW", 7),
    ]
    svg = parsed(str(plot_over_time(counts, 0.0, 120.0, 60, address)))

    classes = [rect.attrib["class"] for rect in svg.iter("rect")]
    assert classes == ["v-allow", "v-block", "v-hold", "v-other"]
    assert "3 allowed, 1 denied" in (svg.findtext("svg/a/title") or "")
    assert [one.attrib["href"] for one in svg.iter("a")] == ["/at/0", "/at/60"]
    heights = [float(rect.attrib["height"]) for rect in svg.iter("rect")]
    assert heights[0] > heights[1]


def test_no_calls_are_an_empty_plot() -> None:
    assert list(parsed(str(plot_over_time([], 0.0, 60.0, 60, address))).iter("rect")) == []


def test_curves_have_a_point_for_each_time_that_leads_to_its_calls() -> None:
    curves = [
        Curve("p50", "c-middle", {0.0: 5, 60.0: 10}),
        Curve("p95", "c-high", {0.0: 20, 60.0: 40}),
    ]
    svg = parsed(str(plot_curves(curves, 0.0, 120.0, 60, address, "ms", "latency")))

    assert [one.attrib["class"] for one in svg.iter("polyline")] == [
        "curve c-middle",
        "curve c-high",
    ]
    assert [one.attrib["href"] for one in svg.iter("a")] == ["/at/0", "/at/60"]
    assert "p50 5 ms, p95 20 ms" in (svg.findtext("svg/a/title") or "")
    heights = [float(one.attrib["d"].split()[1][:-2]) for one in svg.iter("path")]
    assert heights[3] < heights[1] < heights[2] < heights[0]
    assert svg.findtext("p") == "40 ms"


@pytest.mark.parametrize(
    ("value", "shown"), [(123456.7, "123,457 ms"), (1.23456, "1.235 ms"), (999.96, "1000 ms")]
)
def test_the_axis_shows_values_as_people_write_them(value: float, shown: str) -> None:
    curves = [Curve("p50", "c-middle", {0.0: value})]
    svg = parsed(str(plot_curves(curves, 0.0, 60.0, 60, address, "ms", "latency")))
    assert svg.findtext("p") == shown
    assert f"p50 {shown}" in (svg.findtext("svg/a/title") or "")


def test_a_ranking_draws_the_longest_bar_for_the_most() -> None:
    ranking = parsed(str(plot_ranking([("read", 10, "/calls?tool=read"), ("write", 5, "")])))
    widths = [float(rect.attrib["width"]) for rect in ranking.iter("rect")]

    assert widths[0] == 2 * widths[1]
    assert [one.attrib["href"] for one in ranking.iter("a")] == ["/calls?tool=read"]


def test_names_are_text_and_are_cut() -> None:
    text = str(plot_ranking([("<script>" + "x" * 100, 1, '/"><b>'), ("", 1, "")]))

    assert "<script" not in text
    assert "<b>" not in text.partition("</a>")[0]
    assert "…" in text
    parsed(text)


def test_nothing_to_rank_is_said_so() -> None:
    assert "nothing" in str(plot_ranking([]))


def test_plots_need_no_style() -> None:
    text = str(plot_over_time([(0.0, "ALLOW", 1)], 0.0, 60.0, 60, address))
    text += str(plot_ranking([("a", 1, "")]))

    assert "style=" not in text
