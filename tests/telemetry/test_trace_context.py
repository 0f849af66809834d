import pytest

from thoughtgate.telemetry.trace_context import (
    context_in_headers,
    context_in_meta,
    with_meta_context,
)

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_headers_carry_the_context() -> None:
    headers = {"traceparent": PARENT, "tracestate": "a=b", "baggage": "k=v", "accept": "*/*"}
    assert context_in_headers(headers) == {
        "traceparent": PARENT,
        "tracestate": "a=b",
        "baggage": "k=v",
    }


def test_meta_carries_the_context() -> None:
    params = {"name": "x", "_meta": {"traceparent": PARENT, "progressToken": 1}}
    assert context_in_meta(params) == {"traceparent": PARENT}


@pytest.mark.parametrize(
    "params",
    [
        None,
        [],
        {},
        {"_meta": []},
        {"_meta": {}},
        {"_meta": {"traceparent": 7}},
        {"_meta": {"traceparent": PARENT.upper()}},
    ],
)
def test_what_is_no_context_is_none(params: object) -> None:
    assert context_in_meta(params) == {}


def test_a_state_that_is_too_long_or_holds_control_characters_is_left_out() -> None:
    fields = {"traceparent": PARENT, "tracestate": "a=\r\nx", "baggage": "k" * 9000}
    assert context_in_headers(fields) == {"traceparent": PARENT}


def test_params_get_the_context_and_keep_the_rest() -> None:
    params = {"name": "x", "_meta": {"progressToken": 1}}
    sent = with_meta_context(params, {"traceparent": PARENT})
    assert sent == {"name": "x", "_meta": {"progressToken": 1, "traceparent": PARENT}}
    assert params == {"name": "x", "_meta": {"progressToken": 1}}
    assert with_meta_context({"_meta": 3}, {"traceparent": PARENT})["_meta"] == {
        "traceparent": PARENT
    }
    assert with_meta_context(params, {}) is params
