"""Creates the channels of a gate from its settings.

The code of a channel is loaded only for a workflow that uses it: most gates use none of these.
"""

import contextlib
import queue
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

from thoughtgate.channels.answer_places import AnswerPlaces
from thoughtgate.channels.channel import Channel
from thoughtgate.config.key_types import BUILT_IN_CHANNELS
from thoughtgate.config.settings import Settings
from thoughtgate.core.record_events import AGENT_AUTH_REJECTED, Record
from thoughtgate.gate.approvals.channel_secrets import require_secrets
from thoughtgate.gate.approvals.installed_channels import open_installed_channel
from thoughtgate.gate.approvals.queue import open_store
from thoughtgate.gate.clock import now
from thoughtgate.gate.poll_loop import complain
from thoughtgate.stores.approvals import ApprovalStore
from thoughtgate.stores.open_database import StoreLocation

if TYPE_CHECKING:
    from thoughtgate.channels.delivery import DeliveryClient

SLACK: Final = "slack"
WEBHOOK: Final = "webhook"

LOCAL_CHANNELS: Final = frozenset({"console", "terminal", "elicitation"})
"""The channels that need no connection, and so nothing that is opened here."""

MAX_REASON: Final = 300


class Reports:
    """Collects events from other threads of the gate; its driver fetches them."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Record] = queue.SimpleQueue()

    def refused(self, method: str, reason: str) -> None:
        """Report an answer whose signature or origin is not valid."""
        facts = {"method": method, "reason": reason[:MAX_REASON]}
        self.put(Record(AGENT_AUTH_REJECTED, now(), "", "0", {"agent": facts}))

    def put(self, record: Record) -> None:
        """Report an event."""
        self._waiting.put(record)

    def fetch(self) -> list[Record]:
        """Return the events since the last call."""
        # Nobody else removes events, so at least as many as are counted can be had at once.
        return [self._waiting.get() for _ in range(self._waiting.qsize())]


def open_channels(
    settings: Settings,
    environ: Mapping[str, str],
    location: StoreLocation | str,
    *,
    file: str = "",
    reports: Reports,
    places: AnswerPlaces | None = None,
) -> list[Channel]:
    """Return the channels of the workflows; their threads start with the first request.

    ``reports`` receives answers whose signature or origin is not valid; ``places`` says where
    people answer.

    Raises:
        ConfigError: a token or key that a workflow needs is not set, or a channel that a package
            provides cannot be created.
    """
    require_secrets(settings, environ, file)
    found = {
        SLACK: slack_clients(settings, environ),
        WEBHOOK: webhook_clients(settings, environ, reports),
    }
    served = {name: clients for name, clients in found.items() if clients}
    provided = {
        name: each
        for name, each in settings.approval.items()
        if each.channel not in BUILT_IN_CHANNELS
    }

    def open_own() -> AbstractContextManager[ApprovalStore]:
        """Open a store for a thread that waits, which needs its own connection."""
        return contextlib.closing(open_store(location))

    # No terminal here: under wrap and over stdio it belongs to the agent; other gates add their own.
    made: list[Channel] = []
    if served:
        from thoughtgate.channels.delivery import DeliveryChannel

        made += [
            DeliveryChannel(name, clients, open_own, complain) for name, clients in served.items()
        ]
    if provided:
        from thoughtgate.channels.channel_context import ChannelContext

        made += [
            open_installed_channel(
                ChannelContext(each.channel, name, each.options, environ, open_own, complain), file
            )
            for name, each in provided.items()
        ]
    if settings.notify.desktop:
        made += _desktop(environ, places or AnswerPlaces())
    return made


def _desktop(environ: Mapping[str, str], places: AnswerPlaces) -> list[Channel]:
    """Return the desktop's notifications, if this process runs in a desktop session."""
    if not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY") or sys.platform == "darwin"):
        return []
    from thoughtgate.channels.desktop import DesktopNotifications, find_program  # with subprocess

    program = find_program(environ)
    return [DesktopNotifications(program, environ, places, complain)] if program else []


def slack_clients(settings: Settings, environ: Mapping[str, str]) -> dict[str, "DeliveryClient"]:
    """Return the Slack client of each workflow with the Slack channel."""
    wanted = {
        name: each.slack
        for name, each in settings.approval.items()
        if each.channel == SLACK and each.slack is not None
    }
    if not wanted:
        return {}
    from thoughtgate.channels.slack import SlackClient, SlackTarget  # with logging: 0.7 MB

    return {
        name: SlackClient(
            SlackTarget(
                each.channel,
                environ[each.token_env],
                each.mention,
                each.approve_reaction,
                each.deny_reaction,
                each.poll_s,
                each.api_url,
            )
        )
        for name, each in wanted.items()
    }


def webhook_clients(
    settings: Settings, environ: Mapping[str, str], reports: Reports
) -> dict[str, "DeliveryClient"]:
    """Return the webhook client of each workflow with the webhook channel."""
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
