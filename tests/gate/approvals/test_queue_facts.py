"""Requests that a rule on facts makes: remembered approvals for other rules do not answer them."""

from pathlib import Path

from tests.support.approvals import NOW, a_desk, a_store, a_yes, held

from thoughtgate.core.grant import SESSION, TOOL, Remember


def test_a_remembered_decision_does_not_answer_for_facts(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    desk = a_desk(store)
    desk.ask("run.1", held(), "default", NOW)
    store.vote("a1", [a_yes()], NOW + 1, remember=Remember(SESSION, TOOL), grant_id="g1")
    desk.poll(NOW + 2)
    leak = held(rule="no-leaks")
    on_facts = leak._replace(verdict=leak.verdict._replace(on_facts=True))
    assert desk.ask("run.2", on_facts, "default", NOW + 3) is None
    assert desk.ask("run.3", leak, "default", NOW + 4) is not None
    store.close()
