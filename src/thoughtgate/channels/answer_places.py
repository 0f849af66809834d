"""Texts that tell people where they can answer an approval request.

Desktop notifications, progress notifications and the agent's own prompt all use these texts. They
name the tool and the server, but contain no arguments and no secret, because the agent reads them
too.
"""

from dataclasses import dataclass
from typing import Final

from thoughtgate.core.approval import LOCAL_CHANNELS, Approval
from thoughtgate.core.elicitation import HoldNotice
from thoughtgate.errors import visible

MAX_NAME: Final = 80
"""Maximum characters of a tool's or server's name: a notification has only a few short lines."""


@dataclass(slots=True)
class AnswerPlaces:
    """The places where the requests of one gate are answered."""

    console_url: str = ""
    """Scheme and host of the console; empty as long as none is running."""
    tells_agent: bool = True
    """Whether the agent's program is told which calls are held."""

    def notice(self, approval: Approval) -> HoldNotice:
        """Return what the agent's program is told about a held call."""
        if not self.tells_agent:
            return HoldNotice()
        text = f"{subject(approval)} waits for a person's approval. {self.where(approval)}"
        return HoldNotice(waits=text, page=self.page(approval))

    def page(self, approval: Approval) -> str:
        """Return the console's page about a request; empty if no console is known."""
        return f"{self.console_url}/approvals/{approval.id}" if self.console_url else ""

    def where(self, approval: Approval) -> str:
        """Return how a person answers a request."""
        page, command = self.page(approval), "thoughtgate approvals watch"
        asked = "" if approval.channel in LOCAL_CHANNELS else f"Asked on {approval.channel}. "
        return asked + (
            f"Answer at {page} or in another terminal with: {command}"
            if page
            else f"Answer in another terminal with: {command}"
        )


def subject(approval: Approval) -> str:
    """Return what a request is about: a tool and its server."""
    return f"{_cut(approval.tool)} on {_cut(approval.server)}"


def _cut(name: str) -> str:
    shown = visible(name)
    return shown if len(shown) <= MAX_NAME else shown[: MAX_NAME - 1] + "…"
