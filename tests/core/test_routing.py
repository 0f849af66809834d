"""Names and the way back from them."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.core.routing import (
    Route,
    as_entries,
    compose,
    find_owner,
    length_warning,
    matches_template,
    split,
)

ids = st.text(st.characters(categories=["Ll", "Nd"]), min_size=1, max_size=8)
names = st.text(min_size=1, max_size=20)


@pytest.mark.requirement("S002-23", "S002-28")
def test_a_composed_name_is_split_at_the_first_separator() -> None:
    assert compose("fs", "read.file", ".") == "fs.read.file"
    assert split("fs.read.file", ".", ["fs", "git"]) == Route("fs", "read.file")


@pytest.mark.parametrize("name", ["fs", "fs.", ".x", "git.x", "", "nope.read"])
def test_a_name_that_names_no_server_leads_nowhere(name: str) -> None:
    assert split(name, ".", ["fs"]) is None


def test_a_server_whose_id_holds_the_separator_is_found_by_its_whole_id() -> None:
    servers = ["my_files", "my_files_two", "other"]

    assert split("my_files_read", "_", servers) == Route("my_files", "read")
    assert split("my_files_two_read", "_", servers) == Route("my_files_two", "read")
    assert split("other_x_y", "_", servers) == Route("other", "x_y")


@pytest.mark.requirement("S002-25")
@given(server=ids, name=names, separator=st.sampled_from([".", "__", "-", "/", ":"]))
@settings(max_examples=200, deadline=None)
def test_every_composed_name_leads_back(server: str, name: str, separator: str) -> None:
    assert split(compose(server, name, separator), separator, [server]) == Route(server, name)


def test_long_names_are_warned_of_and_too_long_ones_left_out() -> None:
    assert length_warning("s." + "x" * 62) == ""
    assert "some clients refuse" in length_warning("s." + "x" * 63)
    assert "left out" in length_warning("s." + "x" * 127)


@pytest.mark.parametrize(
    ("template", "uri", "matches"),
    [
        ("note:///{name}", "note:///a", True),
        ("note:///{name}", "note:///a/b", False),
        ("file:///{+path}", "file:///a/b/c", True),
        ("x://{a}/y/{b}", "x://1/y/2", True),
        ("x://{a}/y/{b}", "x://1/z/2", False),
        ("x://fixed", "x://fixed", True),
        ("x://fixed", "x://other", False),
        ("x://{a}.txt", "x://1_txt", False),
        ("search://q{?term}", "search://q?term=1", True),
    ],
)
def test_a_uri_is_matched_with_a_template(template: str, uri: str, *, matches: bool) -> None:
    assert matches_template(template, uri) is matches


@given(
    parts=st.lists(st.sampled_from(["a", "/", "ab", "{x}", "{+x}", "{x*}", "b"]), max_size=8),
    uri=st.text("ab/", max_size=10),
)
@settings(max_examples=200, deadline=None)
def test_a_template_matches_what_its_expression_would(parts: list[str], uri: str) -> None:
    wild = {"{x}": "[^/?#]*", "{+x}": ".*", "{x*}": ".*"}
    pattern = "".join(wild.get(part, part) for part in parts)
    assert matches_template("".join(parts), uri) is (re.fullmatch(pattern, uri) is not None)


def test_a_template_cannot_choose_how_long_looking_takes() -> None:
    many = "{+x}a" * 16
    assert not matches_template(many + "Z", "file:///" + "a" * 4000)
    assert matches_template(many, "file:///" + "a" * 4000)
    assert not matches_template("{+x}" * 17, "a")
    assert not matches_template("{+x}", "a" * 5000)


def test_a_resource_belongs_to_who_lists_it_then_to_a_template_then_to_the_only_one() -> None:
    listed, templates = {"a://1": "one"}, [("b://{x}", "two")]

    assert find_owner("a://1", listed, templates, ["one", "two"]) == "one"
    assert find_owner("b://9", listed, templates, ["one", "two"]) == "two"
    assert find_owner("c://9", listed, templates, ["one", "two"]) is None
    assert find_owner("c://9", listed, templates, ["two"]) == "two"


@pytest.mark.parametrize("template", ["{+any}", "{scheme}://{x}", "{x}", "a{+rest}"])
def test_a_template_without_a_scheme_answers_for_nothing(template: str) -> None:
    templates = [(template, "greedy"), ("a://{x}", "owner")]

    assert find_owner("a://1", {}, templates, ["greedy", "owner"]) == "owner"
    assert find_owner("b://1", {}, templates, ["greedy", "owner"]) is None


def test_only_objects_are_entries() -> None:
    assert as_entries([{"name": "a"}, 1, None, "x"]) == [{"name": "a"}]
    assert as_entries({"name": "a"}) == []
