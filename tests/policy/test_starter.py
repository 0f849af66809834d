"""The starter policy: what is forwarded, and what asks a person first."""

import pytest

from thoughtgate.config.build import build_policy
from thoughtgate.config.load import load_settings
from thoughtgate.policy.call import Call, Verdict
from thoughtgate.policy.evaluation import evaluate
from thoughtgate.policy.starter import STARTER_TEXT


def no_files(path: str) -> str:
    raise FileNotFoundError(path)


SETTINGS = load_settings(STARTER_TEXT, file="starter.yaml", env={}, read_text=no_files)
POLICY = build_policy(SETTINGS)


def action(name: str, kind: str = "tool", **annotations: bool) -> str:
    return judged(name, kind, **annotations).action


def judged(name: str, kind: str = "tool", **annotations: bool) -> Verdict:
    return evaluate(Call("s", kind, name, {}, annotations=annotations or None), POLICY, 0.0)


@pytest.mark.parametrize(
    "name",
    [
        "delete_file", "deleteFile", "repos.delete", "drop-table", "remove",
        "overwriteDocument", "execute_command", "run", "runShell",
        "bash", "eval_js", "pay_invoice", "transfer", "createPayment", "purchase_item",
    ],
)  # fmt: skip
def test_a_tool_whose_name_says_it_destroys_executes_or_spends_asks(name: str) -> None:
    assert action(name) == "approve"


@pytest.mark.parametrize(
    "name",
    [
        "read_file", "list_directory", "search", "undelete", "runtime_info", "get_time", "echo",
        "write_file", "edit_file", "move_file",
    ],
)  # fmt: skip
def test_other_tools_are_forwarded(name: str) -> None:
    assert action(name) == "forward"


@pytest.mark.requirement("POL-007")
def test_annotations_tighten_and_never_loosen() -> None:
    assert action("frobnicate") == "forward"
    assert judged("frobnicate", destructiveHint=True).rule == "starter-annotations"
    assert action("frobnicate", destructiveHint=True, readOnlyHint=False) == "approve"
    assert action("frobnicate", destructiveHint=True, readOnlyHint=True) == "forward"
    assert action("delete_file", readOnlyHint=True, destructiveHint=False) == "approve"


def test_resources_and_prompts_are_forwarded() -> None:
    assert action("file:///delete/run", "resource") == "forward"
    assert action("delete", "prompt") == "forward"


def test_one_setting_asks_once_per_tool_and_session() -> None:
    text = STARTER_TEXT.replace("ask: each_call", "ask: once_per_tool")
    changed = load_settings(text, file="starter.yaml", env={}, read_text=no_files)

    assert SETTINGS.approval["default"].ask == "each_call"
    assert changed.approval["default"].ask == "once_per_tool"
