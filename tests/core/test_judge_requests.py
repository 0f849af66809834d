"""The judge and the rest of a request: extra params, definitions of tools, secrets in names."""

from dataclasses import replace
from typing import Any

import pytest

from thoughtgate.core.approval import Decision, digest_of
from thoughtgate.core.judge import MAX_KEPT, Judge
from thoughtgate.core.open_calls import CallRequest, Ruling
from thoughtgate.core.record_events import OK, Record, call_ended
from thoughtgate.policy.call import APPROVE, FORWARD, Call
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.names import is_masked
from thoughtgate.policy.policy import Policy
from thoughtgate.policy.previews import MAX_INSPECT, TRUNCATED
from thoughtgate.policy.redaction import Redactor
from thoughtgate.policy.rules import Rule, RuleSet
from thoughtgate.policy.selectors import Selector
from thoughtgate.policy.visibility import BLOCK, Exposure, Visibility
from thoughtgate.wire.canonical import args_hash
from thoughtgate.wire.methods import named_by

CALL = {"name": "asked", "arguments": {"path": "/tmp/x"}}
SECRET = "hunter2hunter2hunter2"
URI = f"https://host/a?credential={SECRET}"


def _judge() -> Judge:
    asked = Rule("people", APPROVE, Selector(names=compile_globs(["asked"])))
    policy = Policy(
        version="v1",
        default=FORWARD,
        rules=RuleSet([asked]),
        visibility=Visibility({"*": Exposure.of(BLOCK, [URI])}),
    )
    return Judge(policy, "run")


def _request(
    params: dict[str, Any], method: str = "tools/call", *, size: int = 50, at: float = 1.0
) -> CallRequest:
    named = named_by(method, params)
    assert not isinstance(named, str)
    return CallRequest(
        "srv", "1", "agent", method, tuple(named), size, "mcp_stdio", at, params=params
    )


def _held(judge: Judge, ruling: Ruling) -> Call:
    held = judge.open_call(ruling.call_id)
    assert held is not None
    return held.call


def _end(ruling: Ruling, tool: str) -> Record:
    return call_ended(
        2.0, "srv", "1", call_id=ruling.call_id, tool=tool, status=OK, latency_ms=1, size=5
    )


def test_a_plain_call_has_the_members_that_it_always_had() -> None:
    judge = _judge()
    ruling = judge.judge(_request({**CALL, "_meta": {"progressToken": 1}}))
    for record in (*ruling.records, judge.note(_end(ruling, "asked"))):
        assert not {"extra", "extra_hash"} & record.body["call"].keys()


@pytest.mark.promise("params-are-bound")
@pytest.mark.parametrize(
    "extra",
    [
        {"cwd": "/etc"},
        {"inputResponses": {"name": {"action": "accept", "content": {"name": "x"}}}},
        {"_meta": {"com.example/root": "/etc"}},
        {"cwd": True},
        {"cwd": 1},
    ],
)
def test_what_params_carry_beyond_the_call_is_bound_and_on_every_event(
    extra: dict[str, Any],
) -> None:
    judge = _judge()
    plain = _held(judge, judge.judge(_request(CALL)))
    ruling = judge.judge(_request({**CALL, **extra}))
    call = _held(judge, ruling)

    assert call.args_hash == plain.args_hash
    assert digest_of(call, "v1") != digest_of(plain, "v1")
    asked = judge.asked(ruling.call_id, "default", {}, 2.0)
    assert asked is not None
    decided = judge.settle(ruling.call_id, Decision(approved=True), 3.0).records
    events = (*ruling.records, asked, *decided, judge.note(_end(ruling, "asked")))
    assert {one.body["call"]["extra_hash"] for one in events} == {args_hash(extra)}


def test_each_change_of_an_extra_member_changes_the_digest() -> None:
    judge = _judge()
    values: list[Any] = [1, True, "1", [1], {"a": 1}, {"a": True}, None, {}]
    calls = [_held(judge, judge.judge(_request({**CALL, "x": value}))) for value in values]
    assert len({digest_of(call, "v1") for call in calls}) == len(values)


def test_the_record_shows_extra_params_masked_and_bounded() -> None:
    judge = Judge(_judge().policy, "run", preview=60)
    said = judge.judge(_request({**CALL, "password": SECRET})).records[0].body["call"]
    assert said["extra"]["truncated"] is False
    assert SECRET not in said["extra"]["preview"]
    said = judge.judge(_request({**CALL, "x": "y" * 100})).records[0].body["call"]
    assert said["extra"]["truncated"] is True
    assert len(said["extra"]["preview"]) <= 60
    said = judge.judge(_request({**CALL, "x": 1}, size=MAX_INSPECT + 1)).records[0].body["call"]
    assert said["extra"] == {"truncated": True, "preview": TRUNCATED}


def test_a_forwarded_call_keeps_no_large_extra_params_in_memory() -> None:
    judge = _judge()
    ruling = judge.judge(_request({"name": "free", "x": "y"}, size=MAX_KEPT + 1))
    call = _held(judge, ruling)
    assert call.extra is None
    assert judge.note(_end(ruling, "free")).body["call"]["extra_hash"] == args_hash({"x": "y"})


def test_a_request_that_names_several_things_is_bound_to_its_extra_params_too() -> None:
    judge = _judge()
    params = {"notifications": {"resourceSubscriptions": ["a:b", "asked"]}, "x": 1}
    call = _held(judge, judge.judge(_request(params, "subscriptions/listen")))
    assert call.arguments == {"all": ["a:b", "asked"]}
    assert call.extra == {"x": 1}


# The definition of a tool.


def _list(judge: Judge, **entry: Any) -> None:
    judge.screen("srv", "1", "tools/list", ({"name": "asked", **entry},), 1.0)


def _definition(judge: Judge) -> str:
    return _held(judge, judge.judge(_request(CALL))).definition


def test_a_call_knows_the_definition_that_the_server_listed_last() -> None:
    judge = _judge()
    assert _definition(judge) == ""
    seen = set()
    for entry in (
        {},
        {"description": "reads"},
        {"description": "deletes"},
        {"description": "deletes", "inputSchema": {"type": "object"}},
        {"description": "deletes", "outputSchema": {"type": "object"}},
        {"description": "deletes", "annotations": {"readOnlyHint": True}},
        {"description": "deletes", "com.example/unknown": 1},
    ):
        _list(judge, **entry)
        seen.add(_definition(judge))
    assert len(seen) == 7
    assert "" not in seen


def test_icons_and_meta_do_not_define_a_tool() -> None:
    judge = _judge()
    _list(judge, description="reads")
    before = _definition(judge)
    _list(judge, description="reads", icons=[{"src": "x"}], _meta={"listed": 2})
    assert _definition(judge) == before


def test_a_prompt_of_the_same_name_has_no_definition() -> None:
    judge = _judge()
    _list(judge, description="reads")
    ruling = judge.judge(_request({"name": "asked"}, "prompts/get"))
    assert _held(judge, ruling).definition == ""


# Secrets in names.


@pytest.mark.promise("names-are-masked")
def test_a_secret_in_a_uri_is_masked_in_every_event_and_judged_as_it_is() -> None:
    judge = _judge()
    ruling = judge.judge(_request({"uri": URI}, "resources/read"))
    assert ruling.verdict.kind == "not_exposed"
    events = (*ruling.records, judge.note(_end(ruling, URI)))
    assert SECRET not in str(events)
    assert len({one.body["call"]["tool_name"] for one in events}) == 1
    other = judge.judge(_request({"uri": f"{URI}3"}, "resources/read"))
    assert other.records[0].body["call"]["tool_name"] != events[0].body["call"]["tool_name"]


@pytest.mark.promise("names-are-masked")
def test_a_secret_in_a_listed_name_is_masked() -> None:
    judge = _judge()
    hidden, record = judge.screen("srv", "1", "resources/list", ({"uri": URI},), 1.0)
    assert hidden == {URI}
    assert SECRET not in str(record)
    assert list(record.body["list"]["entries"]) == record.body["list"]["hidden"]


def test_the_end_of_a_call_that_is_not_open_is_masked_too() -> None:
    judge = _judge()
    ruling = judge.judge(_request({"uri": URI}, "resources/read"))
    judge.note(_end(ruling, URI))
    assert SECRET not in str(judge.note(_end(ruling, URI)))


def test_names_are_masked_by_the_redactor_of_the_policy_in_force() -> None:
    judge = _judge()
    assert judge.recorded_name("x://injected-value") == "x://injected-value"
    judge.replace_policy(replace(judge.policy, redactor=Redactor(literals=["injected-value"])))
    assert "injected-value" not in judge.recorded_name("x://injected-value")
    assert is_masked(judge.recorded_name("x://injected-value"))
