"""Which environment variables hold the gate's own secrets."""

from thoughtgate.config.settings import Settings


def secret_names(settings: Settings) -> frozenset[str]:
    """Return the names of the variables that hold the gate's own secrets."""
    names = {settings.audit.sign_key_env}
    if settings.listen.auth is not None:
        names.add(settings.listen.auth.token_env)
    for server in settings.servers.values():
        if server.auth is not None:
            names.add(server.auth.token_env)
    for workflow in settings.approval.values():
        if workflow.slack is not None:
            names.add(workflow.slack.token_env)
        if workflow.webhook is not None:
            names.add(workflow.webhook.secret_env)
    return frozenset(names - {""})
