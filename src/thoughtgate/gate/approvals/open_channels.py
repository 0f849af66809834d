"""The channels of a gate, made from its settings."""

import contextlib
import queue
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Final

from thoughtgate.channels.channel import Channel
from thoughtgate.channels.channel_context import ChannelContext
from thoughtgate.channels.delivery import DeliveryChannel, DeliveryClient
from thoughtgate.channels.slack import SlackClient, SlackTarget
from thoughtgate.config.key_types import BUILT_IN_CHANNELS
from thoughtgate.config.settings import Settings, SlackSettings
from thoughtgate.core.record_events import AGENT_AUTH_REJECTED, Record
from thoughtgate.gate.approvals.channel_secrets import require_secrets
from thoughtgate.gate.approvals.installed_channels import open_installed_channel
from thoughtgate.gate.approvals.queue import open_store
from thoughtgate.gate.clock import now
from thoughtgate.stores.approvals import ApprovalStore

Say = Callable[[str], None]

SLACK: Final = "slack"
WEBHOOK: Final = "webhook"

MAX_REASON: Final = 300


class Reports:
    """What the threads of channels want on the record; whoever drives the gate fetches it."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Record] = queue.SimpleQueue()

    def refused(self, method: str, reason: str) -> None:
        """Somebody's answer was not what it said it was."""
        facts = {"method": method, "reason": reason[:MAX_REASON]}
        self._waiting.put(Record(AGENT_AUTH_REJECTED, now(), "", "0", {"agent": facts}))

    def fetch(self) -> list[Record]:
        """Return what came since the last time."""
        return [self._waiting.get() for _ in range(self._waiting.qsize())]


def open_channels(
    settings: Settings,
    environ: Mapping[str, str],
    state: str,
    *,
    file: str = "",
    say: Say | None = None,
    reports: Reports | None = None,
) -> list[Channel]:
    """Return the channels that the workflows ask by; their threads start with the first question.

    ``reports`` is told of answers that are not what they say they are.

    Raises:
        ConfigError: a token or key that a workflow needs is not set, or a channel that a package
            provides cannot be made.
    """
    require_secrets(settings, environ, file)
    say = say or complain
    reports = reports or Reports()
    places = {
        SLACK: slack_clients(settings, environ),
        WEBHOOK: webhook_clients(settings, environ, reports),
    }
    # No terminal here: under wrap and over stdio it is the agent's; other gates bring their own.
    made: list[Channel] = [
        DeliveryChannel(name, clients, lambda: _open_store(state), say)
        for name, clients in places.items()
        if clients
    ]
    made += [
        open_installed_channel(
            ChannelContext(
                each.channel, name, each.options, environ, lambda: _open_store(state), say
            ),
            file,
        )
        for name, each in settings.approval.items()
        if each.channel not in BUILT_IN_CHANNELS
    ]
    return made


def slack_clients(settings: Settings, environ: Mapping[str, str]) -> dict[str, DeliveryClient]:
    """Return how each workflow that asks on Slack speaks to it."""
    return {
        name: SlackClient(_slack_target(each.slack, environ))
        for name, each in settings.approval.items()
        if each.channel == SLACK and each.slack is not None
    }


def webhook_clients(
    settings: Settings, environ: Mapping[str, str], reports: Reports
) -> dict[str, DeliveryClient]:
    """Return how each workflow that asks by webhook speaks to it."""
    wanted = {
        name: each.webhook
        for name, each in settings.approval.items()
        if each.channel == WEBHOOK and each.webhook is not None
    }
    if not wanted:
        return {}
    from thoughtgate.channels.webhook import WebhookClient, WebhookTarget  # urllib: 7 MB

    return {
        name: WebhookClient(
            WebhookTarget(each.url, environ[each.secret_env].encode()),
            refused=lambda reason: reports.refused(WEBHOOK, reason),
        )
        for name, each in wanted.items()
    }


def complain(text: str) -> None:
    """Tell the operator; stdout may carry MCP."""
    sys.stderr.write(f"thoughtgate: {text}\n")


def _slack_target(settings: SlackSettings, environ: Mapping[str, str]) -> SlackTarget:
    return SlackTarget(
        settings.channel,
        environ[settings.token_env],
        settings.mention,
        settings.approve_reaction,
        settings.deny_reaction,
        settings.poll_s,
        settings.api_url,
    )


def _open_store(state: str) -> AbstractContextManager[ApprovalStore]:
    """A thread that waits has a connection of its own."""
    return contextlib.closing(open_store(state))
