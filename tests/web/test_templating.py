"""Times and words on the pages."""

import pytest
from jinja2 import UndefinedError

from thoughtgate.web.templating import (
    make_environment,
    shown_age,
    shown_clock,
    shown_day,
    shown_duration,
)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (61, "1 min 1 s"), (3600, "1 h"), (3660, "1 h 1 min"),
     (86_400, "1 d"), (90_000, "1 d 1 h"), (-5, "0 s")],
)  # fmt: skip
def test_a_span_is_said_as_people_say_it(seconds: float, expected: str) -> None:
    assert shown_duration(seconds) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(-5, "0 s ago"), (59, "59 s ago"), (61, "1 min ago"), (7199, "1 h ago"), (90_000, "1 d ago")],
)
def test_an_age_has_one_unit(seconds: float, expected: str) -> None:
    assert shown_age(seconds) == expected


def test_a_time_that_nobody_knows_is_a_dash() -> None:
    assert shown_clock(0) == "-"
    assert shown_day(0) == "-"
    assert len(shown_clock(1_700_000_000)) == 8
    assert len(shown_day(1_700_000_000)) == 19


def test_templates_escape_and_are_strict() -> None:
    environment = make_environment()

    assert environment.from_string("{{ x }}").render(x="<b>") == "&lt;b&gt;"
    with pytest.raises(UndefinedError):
        environment.from_string("{{ nobody }}").render()


def test_every_template_can_be_read() -> None:
    environment = make_environment()
    names = environment.list_templates(extensions=["html"])

    assert len(names) > 10
    for name in names:
        text = (
            environment.get_template(name).module
            if name == "macros.html"
            else environment.get_template(name)
        )
        assert text


def test_no_template_holds_script_or_style_or_loads_from_outside() -> None:
    environment = make_environment()
    assert environment.loader is not None
    for name in environment.list_templates(extensions=["html"]):
        source = environment.loader.get_source(environment, name)[0]
        assert "<style" not in source
        assert " style=" not in source
        assert " onclick=" not in source
        assert "http://" not in source
        assert "https://" not in source
        assert "|safe" not in source
