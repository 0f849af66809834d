"""Questions that belong to no call."""

from contextlib import closing
from pathlib import Path

from thoughtgate.config.settings import WorkflowSettings
from thoughtgate.core.approval import DEFINITION_KIND, PENDING, Vote
from thoughtgate.gate.approvals.queue import new_approval_id, open_store
from thoughtgate.gate.approvals.standing_questions import (
    ACCEPTED,
    LAPSED,
    StandingQuestion,
    StandingQuestions,
)

NOW = 1_750_000_000.0
QUESTION = StandingQuestion(
    DEFINITION_KIND, "files", "files#1", "definitions:d", "d", {"weight": "mild"}, "changed", "v1"
)


def test_a_question_is_joined_followed_and_withdrawn(tmp_path: Path) -> None:
    told: list[tuple[str, bool]] = []
    with closing(open_store(str(tmp_path))) as store:
        questions = StandingQuestions(
            store,
            lambda _: WorkflowSettings("default", timeout_s=60.0),
            lambda approval, settled: told.append((approval.id, settled)),
            new_approval_id,
        )
        asked = questions.put(QUESTION, NOW)
        assert asked.status == PENDING
        assert questions.put(QUESTION, NOW).approval == asked.approval
        store.vote(asked.approval, [Vote("terminal:ann", True, NOW)], NOW)
        answer = questions.follow(asked.approval, NOW)
        assert (answer.status, answer.by) == (ACCEPTED, "terminal:ann")
        assert told == [(asked.approval, False), (asked.approval, True)]
        again = questions.put(QUESTION._replace(digest="e"), NOW)
        questions.withdraw(again.approval, "gone", NOW)
        assert questions.follow(again.approval, NOW).status == LAPSED
        assert questions.follow("nothing", NOW).status == LAPSED
