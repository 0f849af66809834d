"""The filters of the calls page."""

from starlette.requests import Request

from thoughtgate.web.call_pages.filters import read_search, shown_word


def search(query: str) -> Request:
    return Request({"type": "http", "query_string": query.encode(), "headers": []})


def test_verdicts_may_be_named_as_pages_and_as_the_record_name_them() -> None:
    for word in ("denied", "BLOCK", "Block"):
        assert read_search(search(f"decision={word}")).asked["decision"] == "BLOCK"
    assert read_search(search("status=failed")).asked["status"] == "ERROR"
    assert shown_word("THROTTLE") == "limited"


def test_an_address_contains_only_the_filters_that_are_set() -> None:
    found = read_search(search("tool=a%26b&decision=held&before=12.5_7"))

    assert found.query() == "tool=a%26b&decision=HOLD"
    assert found.query(format="csv") == "tool=a%26b&decision=HOLD&format=csv"
    assert found.before == (12.5, 7)
    assert found.wanted(0.0)["before"] == (12.5, 7)


def test_times_are_times_or_durations() -> None:
    assert read_search(search("since=1H")).wanted(7200.0)["since"] == 3600.0
    assert read_search(search("since=soon")).faults
