"""What policies ask for contents: the strictest treatment counts, over lists and layers."""

import pytest

from thoughtgate.policy.definitions import Silence
from thoughtgate.policy.globs import compile_globs
from thoughtgate.policy.inspection.content_policy import (
    ANNOTATE,
    BLOCK,
    HOLD,
    NONE,
    REDACT,
    ContentPolicy,
    ServerContents,
    combined,
    strictest,
)


def contents(**lists: list[str]) -> ServerContents:
    return ServerContents({name: compile_globs(checks) for name, checks in lists.items()})


@pytest.mark.parametrize(
    ("check", "tier", "action"),
    [
        ("secret-token", "soft", REDACT),
        ("secret-token", "hard", HOLD),
        ("instructions-role", "soft", ANNOTATE),
        ("instructions-role", "hard", HOLD),
        ("hidden-characters", "soft", BLOCK),
    ],
)
def test_the_strictest_list_that_names_a_finding_counts(check: str, tier: str, action: str) -> None:
    asked = contents(annotate=["soft"], redact=["secret-*"], hold=["hard"], block=["hidden-*"])
    assert asked.treatment(check, tier, "tool") == action


def test_a_finding_that_no_list_names_is_only_recorded() -> None:
    assert contents(block=["secret-*"]).treatment("link-data", "hard", "tool") == NONE
    assert strictest([]) == NONE


def test_a_silenced_finding_has_no_treatment_and_blocks_nothing() -> None:
    silence = Silence(compile_globs(["secret-*"]), compile_globs(["test_*"]), "test keys")
    asked = ServerContents({BLOCK: compile_globs(["*"])}, block_secrets=True, silences=(silence,))
    assert asked.treatment("secret-token", "hard", "test_login") == NONE
    assert asked.treatment("secret-token", "hard", "login") == BLOCK
    assert not asked.blocks("secret-token", "hard", "test_login")
    assert asked.blocks("secret-token", "hard", "login")


@pytest.mark.parametrize(("check", "tier"), [("secret-url", "soft"), ("instructions-role", "hard")])
def test_only_hard_findings_of_secrets_block_arguments(check: str, tier: str) -> None:
    assert not ServerContents(block_secrets=True).blocks(check, tier, "tool")


def test_a_server_without_an_entry_has_what_the_star_says() -> None:
    policy = ContentPolicy({"*": contents(block=["*"]), "own": ServerContents(block_secrets=True)})
    assert policy.result_inspection("any")
    assert not policy.inspects_arguments("any")
    assert not policy.result_inspection("own")
    assert policy.inspects_arguments("own")
    assert policy.of("any") is policy.of("any")


def test_layers_are_asked_together() -> None:
    user = ContentPolicy({"files": contents(annotate=["hard"])})
    organisation = ContentPolicy({"*": contents(block=["hard"])})
    both = combined([user, None, organisation])
    assert both is not None
    actions = [one.treatment("link-data", "hard", "t") for one in both.of("files")]
    assert strictest(actions) == BLOCK
    assert combined([None, None]) is None
