"""Another policy while a run goes on: what tightens applies, what loosens waits for a person."""

import json
import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.support.postgres import PostgresServer
from tests.support.reload_scene import DENY, FORWARD, RULES, Scene

from thoughtgate.core.approval import PENDING, Approval, Vote
from thoughtgate.gate.approvals.queue import open_store
from thoughtgate.gate.clock import now
from thoughtgate.gate.running_gates import list_gates
from thoughtgate.policy.call import DENY as DENIED
from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.open_database import StoreLocation
from thoughtgate.stores.policies import PolicyFile


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.close()


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path, DENY)
    yield made
    made.close()


def test_a_change_that_tightens_is_in_force_at_once_and_on_record(scene: Scene) -> None:
    assert scene.action() == "forward"

    scene.write(DENY)

    assert scene.action() == "deny"
    (change,) = scene.changes()
    assert (change["outcome"], change["effect"]) == ("applied", "tightens")
    assert change["policy_version"] == change["new_version"] != change["old_version"]
    assert scene.adopted[0].holds.connection == 3
    assert any("reloaded" in one for one in scene.said)
    assert scene.questions() == []


@pytest.mark.promise("no-silent-loosening")
def test_a_change_that_loosens_waits_for_a_person(strict: Scene) -> None:
    strict.write(FORWARD)

    assert strict.action() == "deny"
    (change,) = strict.changes()
    assert (change["outcome"], change["effect"]) == ("held", "loosens")
    (question,) = strict.questions()
    assert (question.kind, question.tool) == ("policy", str(strict.path))
    assert question.id == change["approval"]
    assert "default: deny -> forward" in json.loads(question.arguments)["loosens"]
    assert "+default: forward" in json.loads(question.arguments)["files"]
    assert strict.adopted == []
    assert any(question.id in one for one in strict.said)


def test_an_accepted_change_is_in_force_and_the_record_says_who_accepted_it(strict: Scene) -> None:
    strict.write(FORWARD)

    strict.decide(approve=True)

    assert strict.action() == "forward"
    held, accepted = strict.changes()
    assert (accepted["outcome"], accepted["by"]) == ("accepted", "terminal:ann")
    assert accepted["approval"] == held["approval"]
    assert accepted["policy_version"] == held["new_version"]
    assert len(strict.adopted) == 1
    assert strict.accepted() == FORWARD


def test_after_a_refusal_the_old_rules_stay_until_the_file_changes(strict: Scene) -> None:
    strict.write(FORWARD)

    strict.decide(approve=False)
    strict.watch.look(now())

    assert strict.action() == "deny"
    assert strict.outcomes() == ["held", "refused"]
    assert strict.watch.reload(now()) == "refused"
    assert strict.questions() == []
    strict.write(FORWARD + "rules: [{tool: wipe, action: deny}]\n")
    assert len(strict.questions()) == 1


def test_a_refused_change_is_not_asked_about_again(strict: Scene) -> None:
    strict.write(FORWARD)
    strict.decide(approve=False)
    strict.write(DENY)
    strict.write(FORWARD)

    assert strict.questions() == []
    assert strict.outcomes()[-1] == "refused"
    assert strict.action() == "deny"


def test_while_a_change_waits_the_stricter_verdict_of_both_counts(tmp_path: Path) -> None:
    scene = Scene(tmp_path, RULES)

    scene.write("schema: 1\ndefault: forward\nrules: [{tool: echo, action: deny}]\n")

    assert (scene.action("echo"), scene.action("other")) == ("deny", "deny")
    scene.decide(approve=True)
    assert (scene.action("echo"), scene.action("other")) == ("deny", "forward")
    scene.close()


@pytest.mark.promise("no-silent-loosening")
def test_nobody_answering_leaves_both_in_force_and_a_request_asks_again(strict: Scene) -> None:
    strict.write(f"{FORWARD}approval: {{default: {{on_timeout: approve}}}}\n")
    late = now() + 3600

    strict.watch.look(late)

    assert strict.action() == "deny"
    assert strict.outcomes() == ["held", "expired"]
    strict.watch.look(late)
    assert strict.questions() == []
    assert strict.watch.reload(now()) == "held"
    assert len(strict.questions()) == 1


def test_a_change_that_is_taken_back_withdraws_the_question(strict: Scene) -> None:
    strict.write(FORWARD)
    strict.write(DENY)

    assert strict.questions() == []
    assert strict.outcomes() == ["held", "unchanged"]
    assert strict.action() == "deny"


def test_a_second_change_replaces_the_question(strict: Scene) -> None:
    strict.write(FORWARD)
    (first,) = strict.questions()
    strict.write(f"{FORWARD}rules: [{{tool: wipe, action: deny}}]\n")

    (second,) = strict.questions()
    assert second.id != first.id
    late = strict.store.vote(first.id, [Vote("terminal:ann", approve=True, at=now())], now())
    assert not isinstance(late, Approval)
    strict.decide(approve=True)
    assert (strict.action(), strict.action("wipe")) == ("forward", "deny")


def test_a_change_that_tightens_applies_while_another_one_waits(tmp_path: Path) -> None:
    scene = Scene(tmp_path, RULES)
    scene.write(FORWARD)
    scene.write(DENY)

    assert scene.action() == "deny"
    assert scene.outcomes() == ["held", "applied"]
    assert scene.questions() == []
    scene.close()


@pytest.mark.promise("no-silent-loosening")
@pytest.mark.parametrize("by", ["agent:me", "elicitation:me", "system:on_timeout", "grant:x"])
def test_an_agent_cannot_accept_a_policy(strict: Scene, by: str) -> None:
    strict.write(f"{FORWARD}approval: {{default: {{allow_elicitation: true}}}}\n")
    (question,) = strict.questions()

    answer = strict.store.vote(question.id, [Vote(by, approve=True, at=now())], now())

    assert not isinstance(answer, Approval)
    strict.watch.look(now())
    assert strict.action() == "deny"


@pytest.mark.promise("no-silent-loosening")
def test_the_approvers_of_the_old_policy_decide(tmp_path: Path) -> None:
    approval = "approval: {default: {approvers: [ann], required: 1}}\n"
    scene = Scene(tmp_path, DENY + approval)
    scene.write(f"{DENY}approval: {{default: {{approvers: [eve]}}}}\n")

    (question,) = scene.questions()
    refused = scene.store.vote(question.id, [Vote("terminal:eve", approve=True, at=now())], now())

    assert not isinstance(refused, Approval)
    scene.decide(approve=True)
    assert scene.outcomes() == ["held", "accepted"]
    scene.close()


@pytest.mark.promise("no-blinding-reload")
def test_more_masking_waits_and_does_not_hide_its_own_question(strict: Scene) -> None:
    strict.write(f'{DENY}redact: {{patterns: [".*"]}}\n')

    (question,) = strict.questions()
    assert 'redact.patterns: [] -> [".*"]' in json.loads(question.arguments)["loosens"]
    assert strict.governor.policy.redactor.mask_text("plain words") == "plain words"


def test_two_gates_ask_one_question_and_both_take_the_answer(tmp_path: Path) -> None:
    scene = Scene(tmp_path, DENY)
    other = Scene(tmp_path, DENY)
    scene.write(FORWARD)
    other.watch.look(now())
    assert len(scene.questions()) == 1

    scene.decide(approve=True)
    other.watch.look(now())

    assert (scene.action(), other.action()) == ("forward", "forward")
    assert other.outcomes() == ["held", "accepted"]
    late = Scene(tmp_path, FORWARD)
    assert late.action() == "forward"
    for each in (scene, other, late):
        each.close()


def test_a_gate_that_notices_later_takes_what_was_accepted_meanwhile(tmp_path: Path) -> None:
    scene, other = Scene(tmp_path, DENY), Scene(tmp_path, DENY)
    scene.write(FORWARD)
    scene.decide(approve=True)

    other.watch.look(now())

    assert other.action() == "forward"
    assert other.outcomes() == ["accepted"]
    assert other.changes()[0]["by"] == "terminal:ann"
    scene.close()
    other.close()


@pytest.mark.promise("no-silent-loosening")
def test_what_was_accepted_before_the_run_cannot_be_brought_back(tmp_path: Path) -> None:
    scene = Scene(tmp_path, FORWARD)
    scene.accept()
    scene.close()
    operated = Scene(tmp_path, DENY)

    operated.write(FORWARD)

    assert operated.action() == "deny"
    assert operated.outcomes() == ["held"]
    operated.close()


def test_a_policy_accepted_by_command_is_taken(strict: Scene) -> None:
    strict.write(FORWARD)

    strict.accept("terminal:bob")

    assert strict.action() == "forward"
    assert strict.changes()[-1]["by"] == "terminal:bob"


def test_tightening_moves_on_what_later_gates_compare_with(scene: Scene) -> None:
    scene.accept()

    scene.write(DENY)

    assert scene.accepted() == DENY


@pytest.mark.promise("no-loosening-restart")
def test_an_agents_own_gate_moves_nothing_on(tmp_path: Path) -> None:
    # The agent chooses the variables of its gate: what tightens there may loosen elsewhere.
    scene = Scene(tmp_path, environ={"THOUGHTGATE_ACTIVE": "1", "WHAT": "deny"})
    scene.accept()

    scene.write('schema: 1\ndefault: "${WHAT:-forward}"\n')

    assert scene.action() == "deny"
    assert scene.accepted() == FORWARD
    scene.close()


def test_a_gate_moves_nothing_on_that_it_did_not_have_in_force(scene: Scene) -> None:
    stricter = PolicyFile.of(str(scene.path), {str(scene.path): RULES})
    scene.store.policies().accept(stricter, "terminal:ann", now())

    scene.write(DENY)

    assert scene.action() == "deny"
    assert scene.accepted() == RULES


def test_reload_auto_applies_what_loosens(tmp_path: Path) -> None:
    scene = Scene(tmp_path, f"{DENY}reload: auto\n")

    scene.write(FORWARD)

    assert scene.action() == "forward"
    (change,) = scene.changes()
    assert (change["outcome"], change["effect"]) == ("applied", "loosens")
    scene.close()


@pytest.mark.promise("no-silent-loosening")
def test_the_new_file_cannot_say_that_it_needs_no_question(strict: Scene) -> None:
    strict.write(f"{FORWARD}reload: auto\n")

    assert strict.action() == "deny"
    assert strict.outcomes() == ["held"]


def test_watching_can_be_switched_off_and_asking_still_works(tmp_path: Path) -> None:
    scene = Scene(tmp_path, f"{DENY}reload: off\n")

    scene.write(FORWARD)
    assert scene.outcomes() == []

    assert scene.watch.reload(now()) == "held"
    assert scene.action() == "deny"
    scene.close()


def test_the_development_profile_takes_every_valid_file(tmp_path: Path) -> None:
    scene = Scene(tmp_path, f"{DENY}profile: development\n")
    scene.accept()

    scene.write(f"{FORWARD}profile: development\n")

    assert scene.outcomes() == ["applied"]
    assert "deny" in scene.accepted()
    scene.close()


@pytest.mark.promise("no-silent-loosening")
def test_another_profile_in_the_file_waits_and_needs_a_restart(strict: Scene) -> None:
    strict.write(f"{DENY}profile: development\n")

    (change,) = strict.changes()
    assert (change["outcome"], change["effect"]) == ("held", "loosens")
    assert change["after_restart"] == ["profile"]
    assert strict.governor.policy.profile == "production"


def test_what_needs_a_restart_is_never_reported_as_applied(scene: Scene) -> None:
    scene.write(f"{FORWARD}listen: {{port: 9000}}\n")

    (change,) = scene.changes()
    assert (change["outcome"], change["after_restart"]) == ("needs_restart", ["listen.port"])
    assert any("listen.port" in one for one in scene.said)


def test_what_needs_a_restart_is_named_beside_what_applies(scene: Scene) -> None:
    scene.write("schema: 1\ndefault: deny\naudit: {fsync: true}\n")

    (change,) = scene.changes()
    assert (change["outcome"], change["after_restart"]) == ("applied", ["audit.fsync"])


def test_a_change_too_long_to_show_is_accepted_by_command_only(strict: Scene) -> None:
    strict.write(FORWARD + "# filler\n" * 6000)

    assert strict.questions() == []
    assert strict.outcomes() == ["held"]
    assert any("thoughtgate policy accept" in one for one in strict.said)
    strict.accept()
    assert strict.action() == "forward"


def digest_of(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def test_every_outcome_names_its_sources_and_the_files_that_changed(strict: Scene) -> None:
    strict.write(RULES)
    strict.write(DENY)
    strict.write(FORWARD)
    strict.decide(approve=False)
    strict.accept()
    strict.write("nonsense: [")

    told = strict.changes()
    path = str(strict.path)
    assert [(one["outcome"], one["changed_files"]) for one in told] == [
        ("held", [{"path": path, "digest": digest_of(RULES)}]),
        ("unchanged", [{"path": path, "digest": digest_of(DENY)}]),
        ("held", [{"path": path, "digest": digest_of(FORWARD)}]),
        ("refused", [{"path": path, "digest": digest_of(FORWARD)}]),
        ("accepted", [{"path": path, "digest": digest_of(FORWARD)}]),
        ("invalid", [{"path": path, "digest": digest_of("nonsense: [")}]),
    ]
    assert {tuple(one["sources"][0]) for one in told} == {("role", "path", "digest")}
    sources = [one["sources"][0]["digest"] for one in told]
    assert sources[2] == sources[3] == sources[4] == sources[5], "the files that are in force"
    assert len(set(sources)) == 3
    assert {one["sources"][0]["path"] for one in told} == {path}


def test_a_file_that_is_gone_is_named_without_a_digest(scene: Scene) -> None:
    scene.path.unlink()
    scene.watch.look(now())

    (change,) = scene.changes()
    assert change["changed_files"] == [{"path": str(scene.path)}]


@pytest.mark.parametrize("text", ["", "schema: 1\n", "nonsense: [", "schema: 1\ndefault: maybe\n"])
def test_a_bad_file_keeps_the_old_rules_and_says_so(scene: Scene, text: str) -> None:
    scene.write(text)

    assert scene.action() == "forward"
    assert scene.outcomes() == ["invalid"]
    assert "the old rules stay in force" in scene.said[-1]
    assert any(str(scene.path) in one for one in scene.said)


def test_a_file_that_is_gone_keeps_the_old_rules(scene: Scene) -> None:
    scene.path.unlink()
    scene.watch.look(now())

    assert scene.action() == "forward"
    assert scene.outcomes() == ["invalid"]


def test_a_mended_file_is_taken_after_a_bad_one(scene: Scene) -> None:
    scene.write("nonsense: [")
    scene.write(DENY)

    assert scene.action() == "deny"
    assert scene.outcomes() == ["invalid", "applied"]


def test_a_file_that_did_not_change_is_not_read_again(scene: Scene) -> None:
    for _ in range(3):
        scene.watch.look(now())

    assert scene.changes() == []


def test_a_file_with_the_same_text_changes_nothing(scene: Scene) -> None:
    scene.write(FORWARD)
    os.utime(scene.path, ns=(0, 7))
    scene.watch.look(now())

    assert scene.changes() == []
    assert scene.watch.reload(now()) == "unchanged"


@pytest.mark.promise("no-silent-loosening")
def test_a_changed_cedar_policy_waits_and_both_are_asked(tmp_path: Path) -> None:
    cedar = tmp_path / "p.cedar"
    cedar.write_text("permit(principal, action, resource);", "utf-8")
    scene = Scene(tmp_path, "schema: 1\ndefault: policy\ncedar: {policies: [p.cedar]}\n")
    assert scene.action() == "forward"

    cedar.write_text("forbid(principal, action, resource);\n", "utf-8")
    scene.watch.look(now())

    assert scene.action() == DENIED
    (question,) = scene.questions()
    assert "+forbid(principal, action, resource);" in json.loads(question.arguments)["files"]
    assert scene.changes()[0]["effect"] == "cannot_be_told"
    scene.decide(approve=True)
    assert scene.action() == DENIED
    cedar.write_text("permit(principal, action, resource);", "utf-8")
    scene.watch.look(now())
    assert scene.action() == DENIED
    scene.close()


def test_without_a_store_nothing_that_loosens_is_applied(
    strict: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        from thoughtgate.errors import StoreError

        raise StoreError("the disk is full")

    monkeypatch.setattr(ApprovalStore, "ask_standing", broken)

    strict.write(FORWARD)

    assert strict.action() == "deny"
    assert strict.outcomes() == ["held"]


def test_what_a_person_accepts_for_all_gates_is_accepted_by_each_on_its_machine(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    url = postgres.url()
    strict, loose = (f"{text}store: '{url}'\n" for text in (DENY, RULES))
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    # The same file on both machines, as a rollout would put it there.
    one = Scene(folders[0], strict)
    two = Scene(folders[0], strict, state=folders[1])
    shared = open_store(StoreLocation(tmp_path, url))
    one.path.write_text(loose, "utf-8")
    for scene in (one, two):
        scene.watch.look(now())
        assert scene.action() == "deny"
    (question,) = shared.listed(PENDING)
    shared.vote(question.id, [Vote("terminal:ann", approve=True, at=now())], now())
    for scene in (one, two):
        scene.watch.look(now())
        assert scene.action() == "forward"
        assert scene.accepted() == loose, "in the file of the state directory"
        scene.close()
    shared.close()


def test_another_store_waits_for_a_person_and_a_restart(strict: Scene) -> None:
    strict.write(f"{DENY}store: postgresql://gate:hunter2@elsewhere/d\n")
    (question,) = strict.questions()
    assert "store" in question.arguments
    assert "hunter2" not in question.arguments
    strict.decide(approve=True)
    assert strict.outcomes() == ["held", "accepted"]
    assert strict.changes()[-1]["after_restart"] == ["store"]
    assert not strict.governor.degraded()
    assert "hunter2" not in json.dumps(strict.changes())


def test_who_may_connect_changes_with_a_restart_and_status_says_so(tmp_path: Path) -> None:
    def config(listen: str, rules: str = "") -> str:
        return f"schema: 1\ndefault: deny\nlisten: {{transport: http, {listen}}}\n{rules}"

    bearer = config("auth: {type: bearer, token_env: A}")
    signed = config("auth: {type: jwt, jwks_url: https://h/k, issuer: i, audience: a}")
    scene = Scene(tmp_path, f"{bearer}reload: auto\n")
    try:
        scene.write(f"{signed}reload: auto\n")
        assert scene.changes()[-1]["after_restart"] == ["listen.auth.type"]
        assert "after a restart: listen.auth.type" in scene.said
        # Another change does not make it look as if the first one were in force.
        scene.write(f"{signed}reload: auto\nrules: [{{tool: x, action: deny}}]\n")
        assert scene.watch.needs_restart == ("listen.auth.type",)
        assert list_gates(str(scene.state))[0]["needs_restart"] == ["listen.auth.type"]
        scene.write(f"{bearer}reload: auto\n")
        assert list_gates(str(scene.state))[0]["needs_restart"] == []
    finally:
        scene.close()
