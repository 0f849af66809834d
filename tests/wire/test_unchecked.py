"""Values made quickly are the values that their constructors make, and whole."""

from typing import Any, NamedTuple

from tests.support.session_play import YES, agent, judged, new_session, server

from thoughtgate.core.commands import JudgeCall, ToAgent, ToServer, WriteRecord
from thoughtgate.core.judge import Judge
from thoughtgate.core.open_calls import CallRequest, OpenCall, Ruling
from thoughtgate.core.record_events import Record
from thoughtgate.core.session_replies import PendingRequest
from thoughtgate.policy.call import FORWARD, Call
from thoughtgate.policy.policy import Policy
from thoughtgate.wire.message import Message
from thoughtgate.wire.methods import Named
from thoughtgate.wire.unchecked import unchecked

CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "echo"}}


class Pair(NamedTuple):
    """Two things."""

    first: int
    second: str = ""


def test_a_value_is_the_one_that_its_constructor_makes() -> None:
    value = unchecked(Pair, (1, "a"))
    assert value == Pair(1, "a")
    assert type(value) is Pair
    assert value._replace(first=2) == Pair(2, "a")


def test_every_value_of_a_call_from_the_question_to_the_answer_is_whole() -> None:
    session, judge = new_session(), Judge(Policy(default=FORWARD), "run")
    asks = session.receive(agent(CALL))
    (question,) = (one for one in asks if type(one) is JudgeCall)
    asked = CallRequest("srv", "1", "me", question.method, question.named, 9, "mcp_http", 0.0)
    ruling = judge.judge(asked)
    held = judge.open_call(ruling.call_id)
    assert held is not None
    waiting = [session._waiting[7], question.params]
    goes = session.receive(judged(7, YES))
    opened = session._open[7]
    answered = session.receive(server({"jsonrpc": "2.0", "id": 7, "result": {}}))

    (message,) = (one for one in waiting[0] if type(one) is Message)
    (written,) = (one for one in answered if type(one) is WriteRecord)
    seen: list[Any] = [
        *asks, *question.named, ruling, *ruling.records, held, held.call, waiting[0],
        message, *goes, opened, *answered, written.record,
    ]  # fmt: skip
    assert all(len(value) == len(type(value)._fields) for value in seen)
    assert {type(value) for value in seen} == {
        PendingRequest, Call, JudgeCall, Message, Named, OpenCall, Record, Ruling, ToAgent, ToServer,
        WriteRecord,
    }  # fmt: skip
