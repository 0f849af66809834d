"""Spellings that lead to the same file must meet the same rules."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoughtgate.policy.uris import normalised, other_spellings

PASSWD = "file:///etc/passwd"


@pytest.mark.parametrize(
    "spelling",
    [
        "file:///tmp/../etc/passwd",
        "file:///./etc/passwd",
        "file:///etc//passwd",
        "file:////etc/passwd",
        "FILE:///etc/passwd",
        "file:///%65tc/passwd",
        "file:///tmp/%2e%2e/etc/passwd",
        "file:///tmp/%252e%252e/etc/passwd",
        "file:///tmp%2f..%2fetc/passwd",
        "file:///tmp\\..\\etc\\passwd",
        "file:///../../etc/passwd",
    ],
)
def test_every_spelling_of_a_file_is_known_for_what_it_opens(spelling: str) -> None:
    assert PASSWD in other_spellings(spelling)


@pytest.mark.parametrize(
    "uri",
    [
        PASSWD,
        "note://today",
        "https://example.com/a?next=/../x",
        "https://example.com/a#../b",
        "",
        "x",
    ],
)
def test_a_plain_uri_has_no_other_spelling(uri: str) -> None:
    assert other_spellings(uri) == ()


def test_a_host_is_the_same_in_any_case() -> None:
    assert "https://example.com/A" in other_spellings("HTTPS://Example.COM/A")


def test_a_path_that_ends_in_dots_stays_a_folder() -> None:
    assert normalised("file:///a/b/..") == "file:///a/"


def test_bytes_that_are_not_text_do_not_trip_it() -> None:
    assert other_spellings("file:///%ff%fe/x")


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="abc./%2eE5c\\:?#", max_size=40))
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalised("file:///" + text)

    assert normalised(once) == once


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_any_text_has_a_bounded_number_of_spellings(text: str) -> None:
    assert len(other_spellings(text)) <= 6


def test_a_uri_encoded_over_and_over_is_left_after_a_few_rounds() -> None:
    deep = "file:///a/%2525252525252e%2525252525252e/b"

    assert 0 < len(other_spellings(deep)) <= 6


def test_a_dot_segment_at_the_root_leads_nowhere() -> None:
    assert normalised("file:///..") == "file:///"
