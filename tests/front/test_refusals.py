"""Refusals outside of sessions: the response and the record have the same id."""

from tests.support.http_gate import Gate, call_of


def test_a_refusal_and_its_record_have_the_same_id(gate: Gate) -> None:
    before = len(gate.records("frame_refused"))
    refused = gate.post(call_of("echo"), {"mcp-session-id": "unknown"})
    assert refused.status == 404
    assert refused.json["error"]["message"].endswith("send initialize again")
    (record,) = gate.records("frame_refused")[before:]
    ident = refused.json["error"]["data"]["correlation_id"]
    assert record["frame"]["correlation_id"] == ident
    assert record["frame"]["address"] == "127.0.0.1"
    assert ident.startswith(f"{record['run_id']}.e")


def test_a_response_that_nobody_expects_has_the_id_of_its_refusal(gate: Gate) -> None:
    before = len(gate.records("frame_refused"))
    refused = gate.post({"jsonrpc": "2.0", "id": 77, "result": {}})
    assert refused.status == 400
    (record,) = gate.records("frame_refused")[before:]
    assert record["frame"]["check"] == "unknown_response"
    found = refused.json["error"]["data"]["correlation_id"]
    assert record["frame"]["correlation_id"] == found
    batch = gate.post([{"jsonrpc": "2.0", "id": 78, "result": {}}])
    assert batch.status == 400
    found = batch.json["error"]["data"]["correlation_id"]
    assert gate.records("frame_refused")[-1]["frame"]["correlation_id"] == found


def test_no_two_errors_have_the_same_id(gate: Gate) -> None:
    for _ in range(3):
        gate.post(b"{nonsense")
        gate.post(call_of("echo"), {"mcp-session-id": "unknown"})
    found = [one["frame"]["correlation_id"] for one in gate.records("frame_refused")]
    assert len(found) == len(set(found))
