"""Secrets of the approval channels, read from the variables that the settings name."""

import importlib.util
from collections.abc import Mapping

from thoughtgate.config.secrets import variables_in
from thoughtgate.config.settings import Settings, WorkflowSettings
from thoughtgate.errors import ConfigError, Problem


def webhook_keys(settings: Settings, environ: Mapping[str, str]) -> dict[str, bytes]:
    """Return the keys that sign decisions, by workflow, for variables that are set."""
    return {
        name: environ[workflow.webhook.secret_env].encode()
        for name, workflow in settings.approval.items()
        if workflow.webhook is not None and environ.get(workflow.webhook.secret_env)
    }


def require_secrets(settings: Settings, environ: Mapping[str, str], file: str = "") -> None:
    """Check that every workflow's channel has what it needs.

    Raises:
        ConfigError: a variable that holds a token or key is not set, or a library is missing.
    """
    problems = missing_secrets(settings, environ, file)
    if problems:
        raise ConfigError(problems)


def missing_secrets(
    settings: Settings, environ: Mapping[str, str], file: str = ""
) -> list[Problem]:
    """Return the variables and libraries that workflows need and that are missing."""
    problems = [
        Problem(f"approval.{name}.{key}", f"the variable {variable} is not set", file)
        for name, workflow in settings.approval.items()
        for key, variable in secret_variables(workflow)
        if not environ.get(variable)
    ]
    in_slack = [name for name, workflow in settings.approval.items() if workflow.channel == "slack"]
    if in_slack and importlib.util.find_spec("slack_sdk") is None:
        problems += [
            Problem(f"approval.{name}.slack", "needs: pip install 'thoughtgate[slack]'", file)
            for name in in_slack
        ]
    return problems


def secret_variables(workflow: WorkflowSettings) -> list[tuple[str, str]]:
    """Return the key and the variable of each secret that a workflow's channel needs."""
    if workflow.channel == "slack" and workflow.slack is not None:
        return [("slack.token_env", workflow.slack.token_env)]
    if workflow.channel == "webhook" and workflow.webhook is not None:
        return [("webhook.secret_env", workflow.webhook.secret_env)]
    return [(f"options.{key}", name) for key, name in variables_in(workflow.options).items()]
