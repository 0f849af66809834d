"""Approval requests on Slack: post a message, then poll its reactions and replies.

No inbound connection is needed. The bot token needs the scopes ``chat:write``,
``reactions:read``, ``users:read`` and ``channels:history`` (or ``groups:history``). A vote is a
person's reaction or reply, never that of a bot: an agent may itself be able to post to Slack. The
approval itself checks the voter against ``approvers``.
"""

import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from thoughtgate.channels.delivery import DeliveryError, RequestGoneError
from thoughtgate.channels.slack_message import (
    outcome_blocks,
    outcome_text,
    parse_reply,
    request_blocks,
    request_text,
)
from thoughtgate.core.approval import Approval, Vote

NAME: Final = "slack"

_Item = TypeVar("_Item")

TIMEOUT_S: Final = 10
"""Timeout of one Slack API call."""

MAX_REPLIES: Final = 200
"""Maximum replies of a thread that are read; an approval needs only a few."""

_GONE: Final = frozenset(
    {"message_not_found", "thread_not_found", "channel_not_found", "is_archived"}
)
"""API errors after which nobody can answer the message."""

_SLACKBOT: Final = "USLACKBOT"
"""Slack's own bot, which ``users.info`` does not mark as a bot."""
_NOT_PERMITTED: Final = frozenset({"missing_scope", "not_allowed_token_type"})
_NO_SUCH_USER: Final = frozenset({"user_not_found", "user_not_visible"})


class _ApiError(DeliveryError):
    """Slack refused a call, with its own error code."""

    def __init__(self, method: str, code: str, retry_after_s: float) -> None:
        super().__init__(f"{method}: {code}", retry_after_s)
        self.code = code


@dataclass(frozen=True, slots=True)
class SlackTarget:
    """A workflow's Slack channel, credentials and reactions."""

    channel: str
    token: str
    mention: tuple[str, ...] = ()
    approve_reaction: str = "+1"
    deny_reaction: str = "-1"
    poll_s: float = 5.0
    api_url: str = "https://slack.com/api/"


class SlackClient:
    """The Slack delivery client of one workflow. Used by one thread only."""

    def __init__(self, target: SlackTarget, clock: Callable[[], float] = time.time) -> None:
        self._target = target
        self._clock = clock
        self.poll_s = target.poll_s
        self._client: Any = None
        self._own_user = ""
        self._people: dict[str, bool] = {}
        """Users whom Slack was asked about, and whether they are people."""

    def send_request(self, approval: Approval) -> str:
        """Post the approval request and return the message's channel and timestamp."""
        target = self._target
        response = self._call(
            "chat_postMessage",
            channel=target.channel,
            text=request_text(approval),
            blocks=request_blocks(
                approval, target.mention, target.approve_reaction, target.deny_reaction
            ),
            # The arguments may contain URLs that an agent chose: Slack must not fetch them.
            unfurl_links=False,
            unfurl_media=False,
        )
        return json.dumps([response["channel"], response["ts"]])

    def poll_votes(self, approval: Approval, handle: str) -> Sequence[Vote]:
        """Return the votes in the message's reactions and replies."""
        channel, ts = _parse_handle(handle)
        if not self._own_user:
            self._own_user = str(self._call("auth_test").get("user_id", ""))
        response = self._call("conversations_replies", channel=channel, ts=ts, limit=MAX_REPLIES)
        messages = _list(response, "messages", dict)
        root = next((each for each in messages if each.get("ts") == ts), None)
        # Slack keeps a tombstone in place of a deleted message that has replies.
        if root is None or root.get("subtype") == "tombstone":
            raise RequestGoneError
        replies = [
            vote for each in messages if each is not root for vote in self._reply_votes(each)
        ]
        votes = [*self._reaction_votes(channel, ts, root), *replies]
        return [vote for vote in votes if self._is_person(vote.by, approval)]

    def send_outcome(self, approval: Approval, handle: str) -> None:
        """Replace the request's message with the outcome."""
        channel, ts = _parse_handle(handle)
        self._call(
            "chat_update",
            channel=channel,
            ts=ts,
            text=f"{request_text(approval)}: {outcome_text(approval)}",
            blocks=outcome_blocks(approval),
        )

    def _reaction_votes(self, channel: str, ts: str, root: dict[str, Any]) -> list[Vote]:
        reactions = _list(root, "reactions", dict)
        if any(len(_list(each, "users", str)) < each.get("count", 0) for each in reactions):
            # A message lists only some of the people who reacted; reactions.get lists them all.
            response = self._call("reactions_get", channel=channel, timestamp=ts, full=True)
            reactions = _list(response.get("message") or {}, "reactions", dict)
        choices = {self._target.approve_reaction: True, self._target.deny_reaction: False}
        votes: list[Vote] = []
        for each in reactions:
            # "+1::skin-tone-2" is the same answer as "+1".
            name = str(each.get("name", "")).partition("::")[0]
            choice = choices.get(name)
            if choice is not None:
                votes += [
                    self._vote(user, choice, f":{name}:") for user in _list(each, "users", str)
                ]
        return votes

    def _reply_votes(self, message: dict[str, Any]) -> list[Vote]:
        user, answer = message.get("user"), parse_reply(str(message.get("text", "")))
        # An app that posts in a person's name leaves its own id in the message.
        is_posted = any(message.get(key) for key in ("bot_id", "app_id", "subtype"))
        if answer is None or not isinstance(user, str) or not user or is_posted:
            return []
        return [self._vote(user, *answer)]

    def _is_person(self, by: str, approval: Approval) -> bool:
        """Tell whether a voter is a person and not a bot.

        Raises:
            DeliveryError: Slack does not say, so nobody's vote can be counted.
        """
        user = by.removeprefix(f"{NAME}:")
        if user in {self._own_user, _SLACKBOT}:
            return False
        if approval.approvers and not {user, by} & set(approval.approvers):
            return True  # a person or not: the approval refuses the vote and says so
        if user not in self._people:
            try:
                found = self._call("users_info", user=user).get("user")
            except _ApiError as error:
                if error.code in _NO_SUCH_USER:
                    found = None
                elif error.code in _NOT_PERMITTED and approval.approvers:
                    return True  # the operator named this user in the config
                else:
                    raise
            self._people[user] = isinstance(found, dict) and not (
                found.get("is_bot", True) or found.get("is_app_user") or found.get("deleted")
            )
        return self._people[user]

    def _vote(self, user: str, approve: bool, reason: str) -> Vote:
        return Vote(f"{NAME}:{user}", approve, self._clock(), reason)

    def _call(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Call one Slack API method.

        Raises:
            DeliveryError: the call failed and may be tried again.
            RequestGoneError: the message no longer exists.
        """
        # slack-sdk is an optional extra, and importing it costs 10 MB.
        from slack_sdk.errors import SlackApiError, SlackClientError

        client = self._client or self._connect()
        try:
            response = getattr(client, method)(**arguments)
        except SlackApiError as error:
            raise _to_error(method, error.response) from None
        except (SlackClientError, OSError, ValueError) as error:
            raise DeliveryError(f"{method} failed: {type(error).__name__}") from None
        return dict(response.data) if isinstance(response.data, dict) else {}

    def _connect(self) -> Any:
        try:
            from slack_sdk import WebClient
        except ImportError:
            raise DeliveryError(
                "slack-sdk is not installed; run pip install 'thoughtgate[slack]'"
            ) from None
        target = self._target
        # slack-sdk would log responses to our stderr, and its own retries would delay the
        # thread without our knowing; delivery.py retries instead.
        silent = logging.getLogger("thoughtgate.slack")
        silent.addHandler(logging.NullHandler())
        silent.propagate = False
        self._client = WebClient(
            token=target.token,
            base_url=target.api_url,
            timeout=TIMEOUT_S,
            retry_handlers=[],
            logger=silent,
        )
        return self._client


def _to_error(method: str, response: Any) -> Exception:
    """Turn a Slack API error into a ``DeliveryError`` or a ``RequestGoneError``."""
    code = str(response.get("error", "")) if isinstance(response.data, dict) else ""
    # When posting, "channel_not_found" is a configuration error, which the operator can fix.
    if code in _GONE and method != "chat_postMessage":
        return RequestGoneError(code)
    headers = {str(name).lower(): value for name, value in (response.headers or {}).items()}
    after = str(headers.get("retry-after", ""))
    return _ApiError(
        method, code or str(response.status_code), float(after) if after.isdecimal() else 0.0
    )


def _list(source: dict[str, Any], name: str, kind: type[_Item]) -> list[_Item]:
    """Return the items of a list that have the expected type; none if there is no such list."""
    found = source.get(name)
    return [each for each in found if isinstance(each, kind)] if isinstance(found, list) else []


def _parse_handle(handle: str) -> tuple[str, str]:
    channel, ts = json.loads(handle)
    return str(channel), str(ts)
