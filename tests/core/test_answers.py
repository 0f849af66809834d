"""What the session reads off a server's answer."""

import pytest

from thoughtgate.core.answers import has_failed, is_shown, outcome_of, says_error
from thoughtgate.core.record_events import ERROR, OK


def test_a_result_is_fine() -> None:
    assert outcome_of({"result": {}}) == (OK, None)


def test_an_error_keeps_its_code_and_none_of_its_words() -> None:
    status, kept = outcome_of({"error": {"code": -32050, "message": "token ghp_x rejected"}})

    assert status == ERROR
    assert kept is not None
    assert kept["code"] == -32050
    assert "ghp" not in str(kept)


@pytest.mark.parametrize("error", ["text", {"code": "7"}, {}])
def test_an_error_of_any_shape_is_an_error_without_a_code(error: object) -> None:
    status, kept = outcome_of({"error": error})

    assert status == ERROR
    assert kept is not None
    assert "code" not in kept


def test_only_a_true_is_error_says_that_the_tool_failed() -> None:
    assert says_error({"result": {"isError": True}})
    assert not says_error({"result": {"isError": "true"}})
    assert not says_error({"error": {}})


def test_an_entry_without_a_readable_name_is_not_shown() -> None:
    hidden = frozenset({"secret"})

    assert is_shown({"name": "open"}, "name", hidden)
    assert not is_shown({"name": "secret"}, "name", hidden)
    assert not is_shown({"name": 5}, "name", hidden)
    assert not is_shown("open", "name", hidden)


@pytest.mark.parametrize(
    ("status", "is_error", "failed"),
    [
        ("OK", False, False),
        ("OK", True, True),
        ("ERROR", False, True),
        ("TIMEOUT", False, True),
        ("CANCELLED", False, None),
    ],
)
def test_a_call_that_was_taken_back_says_nothing_of_its_server(
    status: str, is_error: bool, failed: bool | None
) -> None:
    assert has_failed(status, is_error=is_error) is failed
