"""Questions about changed policies: asked once, decided by people, told to the channels."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from thoughtgate.config.settings import WorkflowSettings
from thoughtgate.core.approval import Approval, Refusal, Vote
from thoughtgate.gate.approvals.policy_questions import PolicyQuestion, PolicyQuestions
from thoughtgate.gate.approvals.queue import new_approval_id, open_store
from thoughtgate.gate.approvals.standing_questions import ACCEPTED, LAPSED, REFUSED, Answer
from thoughtgate.stores.open_database import open_database
from thoughtgate.stores.policies import PolicyFile

NOW = 1_750_000_000.0
PATH = "/home/ann/thoughtgate.yaml"
FILE = PolicyFile.of(PATH, {PATH: "new"})
QUESTION = PolicyQuestion(FILE, "digest", {"loosens": ["default"]}, "it loosens", "v1")
WORKFLOW = WorkflowSettings(
    "default", approvers=("ann",), on_timeout="approve", allow_elicitation=True, timeout_s=60.0
)


class Scene:
    """Questions on a store, and what channels were told."""

    def __init__(self, folder: Path) -> None:
        self.store = open_store(str(folder))
        self.told: list[tuple[str, bool]] = []
        self.questions = self.gate()

    def gate(self) -> PolicyQuestions:
        def tell(approval: Approval, is_settled: bool) -> None:
            self.told.append((approval.status, is_settled))

        return PolicyQuestions(self.store, lambda _: WORKFLOW, tell, new_approval_id)

    def vote(self, answer: Answer, *, approve: bool, by: str = "terminal:ann") -> None:
        counted = self.store.vote(answer.approval, [Vote(by, approve, NOW)], NOW)
        assert isinstance(counted, Approval), counted


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.store.close()


def test_a_question_uses_the_workflow_but_never_silence_or_the_agent(scene: Scene) -> None:
    answer = scene.questions.ask(QUESTION, NOW)

    asked = scene.store.get(answer.approval)
    assert isinstance(asked, Approval)
    assert asked.approvers == ("ann",)
    assert (asked.on_timeout, asked.elicitation, asked.remember) == ("deny", False, False)
    assert asked.expires_at == NOW + 60
    assert scene.told == [("pending", False)]


def test_another_gate_joins_the_question_without_telling_it_again(scene: Scene) -> None:
    first = scene.questions.ask(QUESTION, NOW)
    second = scene.gate().ask(QUESTION, NOW)

    assert second == first
    assert len(scene.told) == 1


@pytest.mark.parametrize(("approve", "status"), [(True, ACCEPTED), (False, REFUSED)])
def test_the_answer_says_who_decided_and_the_channel_is_told(
    scene: Scene, approve: bool, status: str
) -> None:
    answer = scene.questions.ask(QUESTION, NOW)
    scene.vote(answer, approve=approve)

    found = scene.questions.follow(answer.approval, NOW)

    assert found == Answer(status, answer.approval, "terminal:ann")
    assert scene.told[-1][1]
    scene.questions.follow(answer.approval, NOW)
    assert len(scene.told) == 2


def test_a_question_that_nobody_answers_expires(scene: Scene) -> None:
    answer = scene.questions.ask(QUESTION, NOW)

    assert scene.questions.follow(answer.approval, NOW + 61).status == LAPSED
    assert scene.questions.follow("zzzzzz", NOW).status == LAPSED


def test_a_withdrawn_question_cannot_be_answered(scene: Scene) -> None:
    answer = scene.questions.ask(QUESTION, NOW)

    scene.questions.withdraw(answer.approval, "the file changed again", NOW)
    scene.questions.withdraw(answer.approval, "again", NOW)

    assert scene.told == [("pending", False), ("withdrawn", True)]
    late = scene.store.vote(answer.approval, [Vote("terminal:ann", True, NOW)], NOW)
    assert isinstance(late, Refusal)
    assert scene.questions.accepted_since(FILE, 0) == ""


def test_what_was_accepted_since_is_known_by_its_content(scene: Scene) -> None:
    before = scene.questions.rev()
    scene.store.policies().accept(FILE, "terminal:ann", NOW)

    assert scene.questions.accepted_since(FILE, before) == "terminal:ann"
    assert scene.questions.accepted_since(FILE, scene.questions.rev()) == ""
    assert scene.questions.accepted_since(PolicyFile.of(PATH, {PATH: "x"}), before) == ""
    assert scene.questions.accepted_since(PolicyFile.of("/y", {"/y": "x"}), before) == ""


def test_a_store_that_fails_accepts_nothing(scene: Scene) -> None:
    answer = scene.questions.ask(QUESTION, NOW)
    scene.store.close()

    assert scene.questions.ask(QUESTION, NOW) == Answer(LAPSED)
    assert scene.questions.follow(answer.approval, NOW).status == "pending"
    assert scene.questions.accepted_since(FILE, 0) == ""
    assert scene.questions.rev() == 0
    scene.questions.withdraw(answer.approval, "x", NOW)
    scene.questions.continue_from("x", FILE, "y", NOW)


def test_what_is_accepted_in_a_shared_store_is_also_accepted_on_this_machine(
    tmp_path: Path, scene: Scene
) -> None:
    shared = PolicyQuestions(
        scene.store,
        lambda _: WORKFLOW,
        lambda *_: None,
        new_approval_id,
        open_local=lambda: open_database(tmp_path / "local"),
    )
    shared.take_accepted(QUESTION.file, "terminal:ann", NOW)
    with closing(open_store(str(tmp_path / "local"))) as local:
        kept = local.policies().accepted(QUESTION.file.path)
        assert kept is not None
        assert (kept.file.digest, kept.by) == (QUESTION.file.digest, "terminal:ann")
        after = PolicyFile.of(QUESTION.file.path, {"x": "y"})
        shared.continue_from(QUESTION.file.digest, after, "nobody", NOW)
        replaced = local.policies().accepted(QUESTION.file.path)
        assert replaced is not None
        assert replaced.file.digest == after.digest
    assert scene.store.policies().accepted(QUESTION.file.path) is None


def test_with_one_store_nothing_is_accepted_twice(scene: Scene) -> None:
    scene.questions.take_accepted(QUESTION.file, "terminal:ann", NOW)
    assert scene.store.policies().accepted(QUESTION.file.path) is None
