"""Asking on Slack: a message, reactions and replies that are looked for, nothing inbound.

Needs the scopes ``chat:write``, ``reactions:read`` and ``channels:history`` (or
``groups:history``). A vote is a reaction or a reply of a person; who may vote is checked
by the approval itself, against ``approvers``.
"""

import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from thoughtgate.channels.delivery import Gone, Trouble
from thoughtgate.channels.slack_message import (
    outcome_blocks,
    outcome_text,
    parse_reply,
    question_blocks,
    question_text,
)
from thoughtgate.core.approval import Approval, Vote

NAME: Final = "slack"

TIMEOUT_S: Final = 10
"""How long Slack may take for one answer."""

MAX_REPLIES: Final = 200
"""Replies of a thread that are read; an approval is not a conversation."""

_GONE: Final = frozenset(
    {"message_not_found", "thread_not_found", "channel_not_found", "is_archived"}
)
"""Errors after which nobody can answer there."""


@dataclass(frozen=True, slots=True)
class SlackPlace:
    """Where and how a workflow asks."""

    channel: str
    token: str
    mention: tuple[str, ...] = ()
    approve_reaction: str = "+1"
    deny_reaction: str = "-1"
    poll_s: float = 5.0
    api_url: str = "https://slack.com/api/"


class SlackErrand:
    """Speaks to Slack for one workflow. Used by one thread."""

    def __init__(self, place: SlackPlace, clock: Callable[[], float] = time.time) -> None:
        self._place = place
        self._clock = clock
        self.poll_s = place.poll_s
        self._client: Any = None
        self._own_user = ""

    def ask(self, approval: Approval) -> str:
        """Post the question."""
        place = self._place
        said = self._call(
            "chat_postMessage",
            channel=place.channel,
            text=question_text(approval),
            blocks=question_blocks(
                approval, place.mention, place.approve_reaction, place.deny_reaction
            ),
            unfurl_links=False,
            unfurl_media=False,
        )
        return json.dumps([said["channel"], said["ts"]])

    def look(self, approval: Approval, handle: str) -> Sequence[Vote]:
        """Read reactions and replies."""
        del approval
        channel, ts = _place_of(handle)
        if not self._own_user:
            self._own_user = str(self._call("auth_test").get("user_id", ""))
        said = self._call("conversations_replies", channel=channel, ts=ts, limit=MAX_REPLIES)
        messages = [each for each in said.get("messages", []) if isinstance(each, dict)]
        root = next((each for each in messages if each.get("ts") == ts), None)
        if root is None or root.get("subtype") == "tombstone":
            raise Gone
        replies = [vote for each in messages if each is not root for vote in self._of_reply(each)]
        return [*self._of_reactions(channel, ts, root), *replies]

    def settle(self, approval: Approval, handle: str) -> None:
        """Show the outcome in the message that asked."""
        channel, ts = _place_of(handle)
        self._call(
            "chat_update",
            channel=channel,
            ts=ts,
            text=f"{question_text(approval)}: {outcome_text(approval)}",
            blocks=outcome_blocks(approval),
        )

    def _of_reactions(self, channel: str, ts: str, root: dict[str, Any]) -> list[Vote]:
        reactions = _reactions(root)
        if any(len(_users(each)) < each.get("count", 0) for each in reactions):
            # Slack names only some of the people in a message; here it names them all.
            said = self._call("reactions_get", channel=channel, timestamp=ts, full=True)
            reactions = _reactions(said.get("message") or {})
        votes: list[Vote] = []
        for each in reactions:
            # A skin tone makes it no other answer.
            name = str(each.get("name", "")).partition("::")[0]
            choice = {self._place.approve_reaction: True, self._place.deny_reaction: False}.get(
                name
            )
            if choice is not None:
                votes += [self._vote(user, choice, f":{name}:") for user in _users(each)]
        return [vote for vote in votes if vote.by != f"{NAME}:{self._own_user}"]

    def _of_reply(self, message: dict[str, Any]) -> list[Vote]:
        user, answer = message.get("user"), parse_reply(str(message.get("text", "")))
        is_person = isinstance(user, str) and user and user != self._own_user
        if answer is None or not is_person or message.get("bot_id") or message.get("subtype"):
            return []
        return [self._vote(str(user), *answer)]

    def _vote(self, user: str, approve: bool, reason: str) -> Vote:
        return Vote(f"{NAME}:{user}", approve, self._clock(), reason)

    def _call(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Call Slack's API once; what goes wrong becomes ``Trouble`` or ``Gone``."""
        from slack_sdk.errors import SlackApiError, SlackClientError  # an extra, and 10 MB

        client = self._client or self._connect()
        try:
            said = getattr(client, method)(**arguments)
        except SlackApiError as error:
            raise _trouble(method, error.response) from None
        except (SlackClientError, OSError, ValueError) as error:
            raise Trouble(f"{method} failed: {type(error).__name__}") from None
        return dict(said.data) if isinstance(said.data, dict) else {}

    def _connect(self) -> Any:
        try:
            from slack_sdk import WebClient
        except ImportError:
            raise Trouble("slack-sdk is missing; pip install 'thoughtgate[slack]'") from None
        place = self._place
        # Its own log would put what Slack says on our stderr; its own retries would hide time.
        silent = logging.getLogger("thoughtgate.slack")
        silent.addHandler(logging.NullHandler())
        silent.propagate = False
        self._client = WebClient(
            token=place.token,
            base_url=place.api_url,
            timeout=TIMEOUT_S,
            retry_handlers=[],
            logger=silent,
        )
        return self._client


def _trouble(method: str, response: Any) -> Exception:
    """Read an error of Slack's: patience, the end of the message, or something else."""
    code = str(response.get("error", "")) if isinstance(response.data, dict) else ""
    if code in _GONE and method != "chat_postMessage":
        return Gone(code)
    headers = {str(name).lower(): value for name, value in (response.headers or {}).items()}
    after = str(headers.get("retry-after", ""))
    return Trouble(
        f"{method}: {code or response.status_code}", float(after) if after.isdecimal() else 0.0
    )


def _reactions(message: dict[str, Any]) -> list[dict[str, Any]]:
    found = message.get("reactions")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _users(reaction: dict[str, Any]) -> list[str]:
    found = reaction.get("users")
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def _place_of(handle: str) -> tuple[str, str]:
    channel, ts = json.loads(handle)
    return str(channel), str(ts)
