"""The store under everybody's hands at once: one decision, one use, nothing lost."""

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle as Ids
from hypothesis.stateful import (
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)
from tests.support.approvals import (
    CALL,
    DEAD,
    NOW,
    a_no,
    a_store,
    a_yes,
    an_approval,
    put_approval,
    spelled,
)
from tests.support.commands import ROOT
from tests.support.tasks import a_task
from tests.support.waiting import PATIENCE_S, read_line

from thoughtgate.core.approval import (
    APPROVED,
    DENIED,
    EXPIRED,
    PENDING,
    USE_WITHIN_S,
    USED,
    VOID,
    WITHDRAWN,
    Approval,
    Refusal,
    Vote,
    digest_of,
)
from thoughtgate.core.grant import EXACT, ONCE, SESSION, TOOL, UNTIL, Grant, Remember
from thoughtgate.errors import StoreError
from thoughtgate.policy.call import Call
from thoughtgate.stores import approvals as module
from thoughtgate.stores import grants
from thoughtgate.stores.approvals import ApprovalStore, Limits
from thoughtgate.stores.open_database import StoreLocation, open_database
from thoughtgate.stores.process_owner import own_name
from thoughtgate.stores.tasks import TaskStore


def decide(store: ApprovalStore, ident: str, *votes: Vote, now: float = NOW + 1) -> Approval:
    counted = store.vote(ident, votes, now)
    assert isinstance(counted, Approval), counted
    return counted


def refused(result: Approval | Grant | Refusal, kind: str) -> str:
    assert isinstance(result, Refusal), result
    assert result.kind == kind
    return result.text


# Asking and looking.


def test_what_was_asked_is_read_back_exactly(store: ApprovalStore) -> None:
    stored = put_approval(
        store, approvers=("ann", "bob"), required=2, folded=True, elicitation=True
    )
    assert store.get("k3f9ab") == stored
    assert store.listed(PENDING) == [stored]
    assert stored == an_approval(
        approvers=("ann", "bob"), required=2, folded=True, elicitation=True, rev=stored.rev
    )


@pytest.mark.parametrize("column", ["votes", "approvers", "ended_grants"])
@pytest.mark.parametrize("text", ["not JSON", "5"])
def test_a_row_that_another_writer_spoilt_is_a_fault_of_the_store(
    store: ApprovalStore, location: StoreLocation, column: str, text: str
) -> None:
    put_approval(store)
    with contextlib.closing(open_database(location)) as database, database.write() as transaction:
        transaction.execute(f"UPDATE approvals SET {column} = ?", (text,))

    with pytest.raises(StoreError, match="cannot be read: k3f9ab"):
        store.listed(PENDING)


def test_an_approval_is_found_by_the_beginning_of_its_id(store: ApprovalStore) -> None:
    one = put_approval(store, id="abc234", call_id="1")
    put_approval(store, id="abd234", call_id="2")
    assert store.get("abc") == one
    assert store.get(" ABC234 ") == one
    assert "abc234, abd234" in refused(store.get("ab"), "ambiguous")
    for wrong in ("zz", "", "a%", "' OR 1=1", "../x"):
        refused(store.get(wrong), "unknown")


@pytest.mark.promise("keys-never-change-meaning")
def test_a_beginning_that_a_closed_request_has_too_means_none(store: ApprovalStore) -> None:
    put_approval(store, id="abc234", call_id="1")
    decide(store, "abc234", a_yes())
    waiting = put_approval(store, id="abd234", call_id="2")
    assert "abd234" in refused(store.get("ab"), "ambiguous")
    assert store.get("abd") == waiting


def test_changes_come_in_order_and_only_once(store: ApprovalStore, location: StoreLocation) -> None:
    watcher = a_store(location)
    assert watcher.changed()
    assert not watcher.changed()
    one = put_approval(store, id="one", call_id="1")
    two = put_approval(store, id="two", call_id="2")
    assert watcher.changed()
    assert not watcher.changed()
    assert watcher.since(0) == [one, two]
    decided = decide(store, "one", a_yes())
    assert watcher.since(two.rev) == [decided]
    assert watcher.rev() == decided.rev
    watcher.close()


def test_a_change_through_the_same_connection_is_seen_too(store: ApprovalStore) -> None:
    store.changed()
    put_approval(store)
    assert store.changed()


def test_an_id_in_use_is_not_given_twice(store: ApprovalStore) -> None:
    put_approval(store)
    refused(store.ask(an_approval(call_id="run.2"), NOW), "taken")


def test_one_principal_may_wait_for_only_so_many(store: ApprovalStore) -> None:
    limits = Limits(per_principal=2, total=3)
    for number in range(2):
        store.ask(an_approval(id=f"a{number}", call_id=str(number)), NOW, limits)
    refused(store.ask(an_approval(id="a2", call_id="2"), NOW, limits), "limit_principal")
    theirs = an_approval(id="b0", call_id="b0", principal="other")
    assert isinstance(store.ask(theirs, NOW, limits), Approval)
    more = an_approval(id="c0", call_id="c0", principal="third")
    refused(store.ask(more, NOW, limits), "limit_total")
    decide(store, "a0", a_no())
    assert isinstance(store.ask(more, NOW, limits), Approval)


def test_what_nobody_waits_for_does_not_count_against_a_limit(store: ApprovalStore) -> None:
    limits = Limits(per_principal=1, total=10)
    other = digest_of(CALL._replace(name="move_file"), "v1")
    store.ask(an_approval(id="old", call_id="1", owner=DEAD, digest=other), NOW, limits)
    assert isinstance(store.ask(an_approval(id="new", call_id="2"), NOW, limits), Approval)
    closed = store.get("old")
    assert isinstance(closed, Approval)
    assert closed.status == WITHDRAWN


# Deciding and using.


@pytest.mark.promise("approval-is-exact")
def test_an_approval_is_used_once(store: ApprovalStore) -> None:
    asked = put_approval(store)
    refused(store.use(asked.id, asked.digest, NOW), "too_late")
    decide(store, asked.id, a_yes())
    used = store.use(asked.id, asked.digest, NOW + 2)
    assert isinstance(used, Approval)
    assert used.status == USED
    assert "already used" in refused(store.use(asked.id, asked.digest, NOW + 3), "too_late")
    assert "already used" in refused(store.vote(asked.id, [a_no()], NOW + 3), "too_late")


def test_an_approval_serves_no_other_call(store: ApprovalStore) -> None:
    asked = put_approval(store)
    decide(store, asked.id, a_yes())
    other = digest_of(CALL._replace(arguments={"path": "/"}), "v1")
    refused(store.use(asked.id, other, NOW + 2), "not_this")
    assert isinstance(store.use(asked.id, asked.digest, NOW + 2), Approval)


def test_an_approval_given_too_long_ago_is_void(store: ApprovalStore) -> None:
    asked = put_approval(store)
    decide(store, asked.id, a_yes())
    late = NOW + 2 + USE_WITHIN_S
    refused(store.use(asked.id, asked.digest, late), "too_late")
    found = store.get(asked.id)
    assert isinstance(found, Approval)
    assert found.status == VOID


def test_nothing_can_be_done_to_an_unknown_approval(store: ApprovalStore) -> None:
    refused(store.use("nope", "d", NOW), "unknown")
    refused(store.vote("nope", [a_yes()], NOW), "unknown")
    refused(store.withdraw("nope", "gone", NOW), "unknown")
    refused(
        store.add_grant("nope", Remember(ONCE), by="terminal:ann", grant_id="g", now=NOW), "unknown"
    )
    refused(store.revoke_grant("nope"), "unknown")


def test_a_withdrawn_question_cannot_be_answered(store: ApprovalStore) -> None:
    asked = put_approval(store)
    assert isinstance(store.withdraw(asked.id, "the caller cancelled", NOW + 1), Approval)
    assert "the caller cancelled" in refused(store.vote(asked.id, [a_yes()], NOW + 2), "too_late")
    refused(store.withdraw(asked.id, "again", NOW + 3), "too_late")


def test_withdrawing_voids_an_approval_that_was_not_used(store: ApprovalStore) -> None:
    asked = put_approval(store)
    decide(store, asked.id, a_yes())
    closed = store.withdraw(asked.id, "the caller is gone", NOW + 2)
    assert isinstance(closed, Approval)
    assert closed.status == VOID
    refused(store.use(asked.id, asked.digest, NOW + 3), "too_late")


def test_a_vote_after_the_time_closes_the_question(store: ApprovalStore) -> None:
    asked = put_approval(store)
    assert "expired" in refused(store.vote(asked.id, [a_yes()], NOW + 300), "too_late")
    found = store.get(asked.id)
    assert isinstance(found, Approval)
    assert found.status == EXPIRED


def test_a_vote_for_a_dead_asker_closes_the_question_on_one_machine(
    store: ApprovalStore, location: StoreLocation
) -> None:
    asked = put_approval(store, owner=DEAD)
    voted = store.vote(asked.id, [a_yes()], NOW + 1)
    if location.is_shared:
        assert isinstance(voted, Approval)
    else:
        assert module.GONE in refused(voted, "too_late")


def test_a_look_that_brings_no_vote_changes_nothing(store: ApprovalStore) -> None:
    asked = put_approval(store)
    assert store.vote(asked.id, [], NOW + 1) == asked


def test_what_is_due_is_settled_by_whoever_looks(
    store: ApprovalStore, location: StoreLocation
) -> None:
    put_approval(store, id="late", call_id="1", expires_at=NOW + 10)
    put_approval(store, id="auto", call_id="2", expires_at=NOW + 10, on_timeout="approve")
    put_approval(store, CALL._replace(name="move_file"), id="gone", call_id="3", owner=DEAD)
    put_approval(store, id="task", call_id="4", owner="task:tg_1")
    put_approval(store, id="wait", call_id="5")
    decide(store, "task", a_yes())
    assert store.has_due(NOW + 10)
    settled = {each.id: each.status for each in store.settle_due(NOW + 10)}
    # A gate on another machine may still be asked to make the call.
    left = {} if location.is_shared else {"gone": WITHDRAWN}
    assert settled == {"late": EXPIRED, "auto": APPROVED, **left}
    assert not store.has_due(NOW + 10)
    assert store.settle_due(NOW + 10) == []
    stale = {each.id: each.status for each in store.settle_due(NOW + 10 + USE_WITHIN_S + 1)}
    late = {"gone": EXPIRED} if location.is_shared else {}
    assert stale == {"task": VOID, "auto": VOID, "wait": EXPIRED, **late}


def test_an_approval_whose_asker_died_is_void_on_one_machine(
    store: ApprovalStore, location: StoreLocation
) -> None:
    asked = put_approval(store)
    decide(store, asked.id, a_yes())
    later = a_store(location, alive=lambda _: False)
    assert later.has_due(NOW + 2) is not location.is_shared
    closed = [(each.status, each.closed_reason) for each in later.settle_due(NOW + 2)]
    assert closed == ([] if location.is_shared else [(VOID, module.GONE)])
    later.close()


# Remembering.


def remember(store: ApprovalStore, wish: Remember, ident: str = "k3f9ab") -> Approval | Refusal:
    return store.vote(ident, [a_yes()], NOW + 1, remember=wish, grant_id="g1")


def ask_again(
    store: ApprovalStore, ident: str, call: Call = CALL, *, now: float = NOW + 2, **changes: Any
) -> Approval:
    return put_approval(store, call, id=ident, call_id=f"run.{ident}", now=now, **changes)


def test_a_remembered_call_is_answered_without_asking_and_still_used_once(
    store: ApprovalStore,
) -> None:
    put_approval(store)
    remember(store, Remember(SESSION, EXACT))
    again = ask_again(store, "two")
    assert (again.status, again.grant) == (APPROVED, "g1")
    assert again.decider is not None
    assert again.decider.by == "terminal:ann"
    assert isinstance(store.use("two", again.digest, NOW + 3), Approval)
    refused(store.use("two", again.digest, NOW + 3), "too_late")
    assert ask_again(store, "three", CALL._replace(arguments={})).status == PENDING
    assert ask_again(store, "four", CALL._replace(session="s2")).status == PENDING
    (grant,) = store.grants(NOW + 4)
    assert (grant.uses, grant.last_used_at) == (1, NOW + 2)


def test_a_grant_ends_by_time_and_by_being_taken_back(store: ApprovalStore) -> None:
    put_approval(store)
    remember(store, Remember(UNTIL, TOOL, 60))
    assert ask_again(store, "two", CALL._replace(arguments={})).status == APPROVED
    assert ask_again(store, "late", now=NOW + 61).status == PENDING
    assert store.grants(NOW + 61) == []
    assert isinstance(store.revoke_grant("g1"), Grant)
    assert ask_again(store, "three").status == PENDING


def test_a_late_answer_can_allow_the_next_such_call_once(store: ApprovalStore) -> None:
    put_approval(store)
    store.settle_due(NOW + 300)
    grant = store.add_grant(
        "k3f9ab", Remember(ONCE), by="terminal:ann", grant_id="g1", now=NOW + 301
    )
    assert isinstance(grant, Grant)
    assert ask_again(store, "two", now=NOW + 302).status == APPROVED
    assert ask_again(store, "three", now=NOW + 303).status == PENDING
    assert store.grants(NOW + 304) == []


def test_only_an_approver_can_allow_what_comes_next(store: ApprovalStore) -> None:
    put_approval(store, approvers=("terminal:ann",))
    wish = Remember(ONCE)
    for by, kind in (("terminal:bob", "not_allowed"), ("agent:local", "self")):
        refused(store.add_grant("k3f9ab", wish, by=by, grant_id="g1", now=NOW), kind)


def test_a_wish_that_cannot_be_kept_keeps_the_vote_from_counting(store: ApprovalStore) -> None:
    asked = put_approval(store, required=2)
    refused(remember(store, Remember(SESSION)), "cannot_remember")
    assert store.get(asked.id) == asked
    denied = store.vote(asked.id, [a_no()], NOW + 1, remember=Remember(SESSION), grant_id="g")
    refused(denied, "cannot_remember")
    assert store.grants(NOW) == []


def test_a_grant_of_somebody_who_is_no_longer_an_approver_is_not_used(store: ApprovalStore) -> None:
    put_approval(store)
    remember(store, Remember(SESSION, TOOL))
    assert ask_again(store, "two", approvers=("terminal:bob",)).status == PENDING
    assert ask_again(store, "three", approvers=("terminal:ann",)).status == APPROVED


def test_grants_are_bounded(store: ApprovalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grants, "MAX_GRANTS", 0)
    put_approval(store)
    assert "too many" in refused(remember(store, Remember(SESSION)), "cannot_remember")


# Housekeeping.


def test_old_and_surplus_closed_approvals_are_forgotten(
    store: ApprovalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_approval(store)
    remember(store, Remember(UNTIL, TOOL, 60))
    store.keep_handle("k3f9ab", "slack", "C1/123")
    for number in range(4):
        each = ask_again(store, f"c{number}", CALL._replace(session="x", name="other"))
        store.withdraw(each.id, "x", NOW + 3)
    waiting = ask_again(store, "wait", CALL._replace(name="other"))
    monkeypatch.setattr(module, "MAX_CLOSED", 2)
    assert store.purge(NOW + 10) == 2
    assert {each.id for each in store.listed()} == {"k3f9ab", "c2", "c3", "wait"}
    store.settle_due(NOW + 1000)
    assert store.purge(NOW + module.KEEP_S + 10) == 4
    assert store.listed() == []
    assert store.grants(NOW) == []
    assert store.handle("k3f9ab", "slack") == ""
    assert waiting.status == PENDING


def test_a_channel_keeps_its_own_handle(store: ApprovalStore) -> None:
    put_approval(store)
    assert store.handle("k3f9ab", "slack") == ""
    store.keep_handle("k3f9ab", "slack", "one")
    store.keep_handle("k3f9ab", "slack", "two")
    store.keep_handle("k3f9ab", "webhook", "three")
    assert store.handle("k3f9ab", "slack") == "two"


# Many processes at once.


@contextlib.contextmanager
def processes(*commands: tuple[str, ...]) -> Iterator[list[subprocess.Popen[str]]]:
    """Start processes of the approval script and wait until each is ready."""
    script = [sys.executable, "-m", "tests.support.approval_process"]
    started = [
        subprocess.Popen(
            [*script, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for command in commands
    ]
    try:
        for process in started:
            assert process.stdout is not None
            assert read_line(process.stdout) == "ready\n"
        yield started
    finally:
        for process in started:
            process.kill()
            process.communicate(timeout=PATIENCE_S)


def let_go(started: list[subprocess.Popen[str]]) -> list[str]:
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return [process.communicate(timeout=PATIENCE_S)[0].strip() for process in started]


def test_of_many_processes_deciding_at_once_one_decides(location: StoreLocation) -> None:
    shared = a_store(location)
    now = time.time()
    put_approval(shared, id="vote", now=now, created_at=now, expires_at=now + 300, owner=own_name())
    state = spelled(location)
    voters = [("vote", state, "vote", f"terminal:p{n}", "yes" if n % 2 else "no") for n in range(6)]
    with processes(*voters) as started:
        said = let_go(started)
    assert said.count("counted") == 1
    found = shared.get("vote")
    assert isinstance(found, Approval)
    assert found.status == (DENIED if said.index("counted") % 2 == 0 else APPROVED)
    assert len(found.votes) == 1
    shared.close()


def test_of_many_processes_spending_at_once_one_spends(location: StoreLocation) -> None:
    shared = a_store(location)
    now = time.time()
    asked = put_approval(
        shared, id="use", now=now, created_at=now, expires_at=now + 300, owner=own_name()
    )
    decide(shared, "use", a_yes(at=now), now=now)
    with processes(*[("use", spelled(location), "use", asked.digest)] * 6) as started:
        said = let_go(started)
    assert sorted(said) == ["refused"] * 5 + ["used"]
    shared.close()


# Any order of events.

PEOPLE = ("terminal:ann", "terminal:bob", "slack:U1", "agent:local", "system:on_timeout")


class AnyOrder(RuleBasedStateMachine):
    """Whatever happens in whatever order, a use is preceded by approval and happens once."""

    ids = Ids("ids")

    @initialize()
    def open_store(self) -> None:
        self.directory = tempfile.TemporaryDirectory()
        self.dead: set[str] = set()
        path = Path(self.directory.name)
        self.stores = [a_store(path, alive=lambda owner: owner not in self.dead) for _ in range(2)]
        self.now = NOW
        self.asked: dict[str, Approval] = {}
        self.yes: dict[str, set[str]] = {}
        self.no: set[str] = set()
        self.uses: dict[str, int] = {}

    @rule(
        target=ids,
        required=st.integers(1, 2),
        on_timeout=st.sampled_from(["deny", "deny", "approve"]),
        owner=st.sampled_from(["gate|1", "gate|2", "task:1"]),
    )
    def ask(self, required: int, on_timeout: str, owner: str) -> Any:
        ident = f"a{len(self.asked)}"
        stored = self.stores[0].ask(
            an_approval(
                id=ident,
                call_id=ident,
                required=required,
                on_timeout=on_timeout,
                owner=f"{owner}{ident}" if owner.startswith("task:") else owner,
                created_at=self.now,
                expires_at=self.now + 50,
            ),
            self.now,
            Limits(100, 100),
        )
        assert isinstance(stored, Approval)
        assert stored.status == PENDING
        self.asked[ident] = stored
        return multiple(ident)

    @rule(ident=ids, by=st.sampled_from(PEOPLE), approve=st.booleans(), side=st.integers(0, 1))
    def vote(self, ident: str, by: str, approve: bool, side: int) -> None:
        counted = self.stores[side].vote(ident, [Vote(by, approve, self.now)], self.now)
        if isinstance(counted, Refusal):
            return
        assert by in PEOPLE[:3]
        if approve:
            self.yes.setdefault(ident, set()).add(by)
        else:
            self.no.add(ident)

    @rule(ident=ids, side=st.integers(0, 1))
    def use(self, ident: str, side: int) -> None:
        asked = self.asked[ident]
        used = self.stores[side].use(ident, asked.digest, self.now)
        if isinstance(used, Refusal):
            return
        self.uses[ident] = self.uses.get(ident, 0) + 1
        silent = asked.on_timeout == "approve" and self.now >= asked.expires_at
        assert silent or len(self.yes.get(ident, ())) >= asked.required
        assert ident not in self.no
        assert used.decided_at + USE_WITHIN_S >= self.now

    @rule(ident=consumes(ids))
    def withdraw(self, ident: str) -> None:
        self.stores[0].withdraw(ident, "gone", self.now)
        assert isinstance(self.stores[1].use(ident, self.asked[ident].digest, self.now), Refusal)

    @rule(seconds=st.sampled_from([1.0, 30.0, 400.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(side=st.integers(0, 1))
    def settle(self, side: int) -> None:
        self.stores[side].settle_due(self.now)
        assert not self.stores[1 - side].has_due(self.now)

    @rule(owner=st.sampled_from(["gate|1", "gate|2"]))
    def die(self, owner: str) -> None:
        self.dead.add(owner)

    @invariant()
    def nothing_is_used_twice(self) -> None:
        assert all(count == 1 for count in getattr(self, "uses", {}).values())

    def teardown(self) -> None:
        for store in getattr(self, "stores", ()):
            store.close()
        if hasattr(self, "directory"):
            self.directory.cleanup()


AnyOrder.TestCase.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
TestAnyOrder = AnyOrder.TestCase


# Questions of tasks.


def test_a_question_of_an_ended_task_is_closed_later(
    store: ApprovalStore, location: StoreLocation
) -> None:
    later = NOW + module.ORPHAN_AFTER_S + 1
    tasks = TaskStore(open_database(location))
    for number, phase in enumerate(("held", "cancelled"), 1):
        tasks.save(a_task(id=f"tg_{number}", phase=phase))
        put_approval(store, id=f"q{number}", call_id=f"{number}", owner=f"task:tg_{number}")
    put_approval(store, id="q3", call_id="3", owner="task:tg_3")
    assert not store.has_due(NOW + 1)
    refused(store.vote("q2", [a_yes()], later), "too_late")
    assert [each.id for each in store.settle_due(later)] == ["q3"]
    assert isinstance(store.vote("q1", [a_yes()], later), Approval)
    tasks.close()
