"""Secrets in calls, wherever a server would read them."""

from typing import Any
from urllib.parse import quote

import pytest

from thoughtgate.policy.call import PROMPT, RESOURCE, TOOL, Call
from thoughtgate.policy.inspection.arguments import blocked_findings
from thoughtgate.policy.inspection.content_policy import ServerContents

KEY = (
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n"
    "-----END PRIVATE KEY-----"
)
ASKED = (ServerContents(block_secrets=True),)


@pytest.mark.parametrize(
    ("kind", "name", "arguments"),
    [
        (TOOL, "t", {"a": {"b": [1, KEY]}}),
        (TOOL, "t", {KEY: 1}),
        (PROMPT, "p", {"a": KEY}),
        (RESOURCE, f"file:///{KEY}", {}),
        (RESOURCE, f"file:///?a={quote(KEY)}", {}),
    ],
    ids=["value", "name", "prompt", "uri", "encoded"],
)
def test_a_secret_is_found_at_any_depth(kind: str, name: str, arguments: dict[str, Any]) -> None:
    found = blocked_findings(Call("s", kind, name, arguments), ASKED)
    assert {one.check for one in found} == {"secret-key"}
    assert all(KEY.splitlines()[1] not in one.where for one in found)


def test_a_secret_in_extra_params_is_found() -> None:
    call = Call("s", TOOL, "t", {"a": 1}, extra={"more": KEY})
    assert blocked_findings(call, ASKED)


def test_other_arguments_are_not_denied() -> None:
    call = Call("s", TOOL, "t", {"sha": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "n": 5})
    assert blocked_findings(call, ASKED) == ()
    assert blocked_findings(call._replace(arguments={"a": KEY}), (ServerContents(),)) == ()
