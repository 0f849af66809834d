"""Finds the environment variables that hold the gate's own secrets."""

from collections.abc import Mapping
from typing import Any

from thoughtgate.config.settings import Settings


def secret_names(settings: Settings) -> frozenset[str]:
    """Return the names of the variables that hold the gate's own secrets."""
    names = {settings.audit.sign_key_env, settings.keys.tokens_env}
    if settings.listen.auth is not None:
        names.add(settings.listen.auth.token_env)
    for server in settings.servers.values():
        if server.auth is not None:
            names.update((server.auth.token_env, server.auth.client_secret_env))
    for workflow in settings.approval.values():
        if workflow.slack is not None:
            names.add(workflow.slack.token_env)
        if workflow.webhook is not None:
            names.add(workflow.webhook.secret_env)
        names.update(variables_in(workflow.options).values())
    return frozenset(names - {""})


def variables_in(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of a channel that end in ``_env``, with the variables that they name."""
    return {
        key: value
        for key, value in options.items()
        if key.endswith("_env") and isinstance(value, str)
    }
