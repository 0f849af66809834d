"""Variables that hold the gate's own secrets are known by their names."""

from thoughtgate.config.load import load_settings
from thoughtgate.config.secrets import secret_names

CONFIG = """\
schema: 1
default: forward
servers:
  git: {command: x, timeout: 7s}
  web: {url: "https://example.com/mcp", auth: {type: bearer, token_env: WEB_TOKEN}}
approval:
  ops: {channel: slack, slack: {channel: "#ops", token_env: SLACK_TOKEN}}
  post: {channel: pigeon, options: {ring_env: RING, coop: COOP, count_env: 3}}
  hook: {channel: webhook, webhook: {url: "https://example.com/h", secret_env: HOOK_SECRET}}
listen: {transport: http, auth: {type: bearer, token_env: AGENT_TOKEN}}
audit: {sign_key_env: SIGN_KEY}
"""
SECRETS = {"WEB_TOKEN", "SLACK_TOKEN", "HOOK_SECRET", "AGENT_TOKEN", "SIGN_KEY", "RING"}


def test_secrets_are_known_by_the_variables_that_hold_them() -> None:
    settings = load_settings(
        CONFIG, file="c.yaml", env={}, read_text=lambda _name: "", channels=lambda: ["pigeon"]
    )

    assert secret_names(settings) == SECRETS
