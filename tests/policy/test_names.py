"""Names without secrets: what is masked in them, and that they stay different."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thoughtgate.policy.names import MAX_SECRET, is_masked, recorded_name, shown_name
from thoughtgate.policy.redaction import Redactor

SECRET = "hunter2hunter2hunter2"
REDACTOR = Redactor(literals=["injected-value"])


@pytest.mark.parametrize(
    "name",
    [
        "read_file",
        "file:///home/me/notes.txt",
        "https://host/a?page=2&q=a%20b",
        "https://git@host/repository",
        "a=b",
        "mail@host",
        "pageToken=5",
    ],
)
def test_a_name_without_secrets_stays_as_it_is(name: str) -> None:
    assert shown_name(name, REDACTOR) == recorded_name(name, REDACTOR, 512) == name
    assert not is_masked(name)


@pytest.mark.promise("names-are-masked")
@pytest.mark.parametrize(
    "name",
    [
        f"https://me:{SECRET}@host/a",
        f"https://{SECRET}@host/a",
        f"https://host/a?access_token={SECRET}",
        f"https://host/a?x=1&client_secret={SECRET}&y=2",
        f"https://host/a?x=1;credential={SECRET}",
        f"https://host/a?client%5Fsecret={SECRET}",
        f"https://host/a#id_token={SECRET}",
        f"https://host/ghp_{SECRET}/a",
        f"tool sk-{SECRET}",
    ],
)
def test_a_secret_in_a_name_is_masked(name: str) -> None:
    shown = shown_name(name, REDACTOR)
    assert SECRET not in shown
    assert is_masked(shown)
    assert shown == recorded_name(name, REDACTOR, 512)
    assert shown_name(name.replace(SECRET, f"{SECRET}3"), REDACTOR) != shown


def test_an_injected_value_is_masked() -> None:
    assert "injected-value" not in shown_name("https://host/injected-value", REDACTOR)


def test_only_the_run_of_a_token_is_masked() -> None:
    shown = shown_name(f"x://host/?credential={SECRET}$(curl)&b=1", REDACTOR)
    assert "$(curl)&b=1" in shown
    assert SECRET not in shown


def test_a_name_that_looks_like_a_masked_one_is_told_apart_from_it() -> None:
    shown = shown_name(f"https://host/?credential={SECRET}", REDACTOR)
    assert shown_name(shown, REDACTOR) != shown
    assert recorded_name(shown, REDACTOR, 512) != shown


def test_a_long_name_is_cut_and_keeps_its_hash() -> None:
    long = f"https://host/?credential={SECRET}&" + "x" * 600
    other = long + "y"
    first, second = recorded_name(long, REDACTOR, 512), recorded_name(other, REDACTOR, 512)
    assert len(first) == len(second) == 512
    assert is_masked(first)
    assert first != second
    assert recorded_name("x" * 600, REDACTOR, 512) == "x" * 512


def test_a_secret_that_the_cut_splits_is_masked() -> None:
    shown = recorded_name(f"https://host/{'x' * 480}?credential={SECRET}", REDACTOR, 512)
    assert SECRET[:4] not in shown


def test_only_the_beginning_of_a_huge_name_is_searched_for_the_record() -> None:
    huge = "x" * (512 + MAX_SECRET) + f"?credential={SECRET}"
    assert recorded_name(huge, REDACTOR, 512) == "x" * 512
    assert SECRET not in shown_name(huge, REDACTOR)


@given(st.text(max_size=40), st.text(max_size=40))
def test_two_names_never_become_one(one: str, other: str) -> None:
    names = {f"x://h/?token={one}", f"x://h/?token={other}", one, other}
    assert len({shown_name(name, REDACTOR) for name in names}) == len(names)
