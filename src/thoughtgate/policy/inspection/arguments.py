"""Findings in a call that deny it: secrets on their way to a server."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

from thoughtgate.policy.call import RESOURCE, Call
from thoughtgate.policy.inspection.content_policy import Found, ServerContents
from thoughtgate.policy.inspection.inspect import inspect_arguments
from thoughtgate.policy.inspection.treatment import as_found


def blocked_findings(call: Call, asked: Iterable[ServerContents]) -> tuple[Found, ...]:
    """Return the findings in a call for which one of these settings denies it."""
    settings = tuple(asked)
    return tuple(
        as_found(found)
        for found in inspect_arguments(_said_to_server(call))
        if any(one.blocks(found.check, found.tier, call.name) for one in settings)
    )


def recorded_findings(call: Call, asked: Iterable[ServerContents]) -> tuple[Found, ...]:
    """Return all findings in a call if one of these settings has one of them recorded."""
    settings = tuple(asked)
    found = inspect_arguments(_said_to_server(call))
    is_recorded = any(
        setting.records(one.check, one.tier, call.name) for one in found for setting in settings
    )
    return tuple(map(as_found, found)) if is_recorded else ()


def _said_to_server(call: Call) -> Any:
    """Return everything that the server reads of a call; places in arguments begin with their name."""
    said: dict[str, Any] = dict(call.arguments)
    if call.kind == RESOURCE:
        said = {"uri": call.name}
        if "%" in call.name:
            # Servers decode URIs, so a secret in one is often percent-encoded.
            said["uri, decoded"] = unquote(call.name)
    # Extra params are rare; their own names keep them apart from the arguments.
    return [said, call.extra] if call.extra else said
