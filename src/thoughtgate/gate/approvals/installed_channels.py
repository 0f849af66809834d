"""Approval channels that installed packages provide, found through their entry points.

The code of such a channel is trusted like the gate's own, but its failures stay its own: an
exception is reported to the operator, and the request can still be answered elsewhere.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from thoughtgate.channels.channel import Channel, Stoppable
from thoughtgate.config.key_types import BUILT_IN_CHANNELS
from thoughtgate.core.approval import AGENT_CHANNEL, GRANT_CHANNEL, SYSTEM_CHANNEL, Approval
from thoughtgate.errors import ConfigError, Problem

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from thoughtgate.channels.channel_context import ChannelContext

GROUP: Final = "thoughtgate.channels"
"""The entry-point group."""

RESERVED: Final = frozenset({*BUILT_IN_CHANNELS, AGENT_CHANNEL, GRANT_CHANNEL, SYSTEM_CHANNEL})
"""Names that a package cannot take: reviewers of these channels are known by them."""


def installed_channels() -> frozenset[str]:
    """Return the names of the channels that installed packages provide."""
    return frozenset(point.name for point in _entry_points())


def open_installed_channel(context: "ChannelContext", file: str = "") -> Channel:
    """Make the channel of one workflow.

    Raises:
        ConfigError: no package, or more than one, provides the channel; its code cannot be
            loaded; or it refuses the workflow's options.
    """
    key = f"approval.{context.workflow}"
    found = [point for point in _entry_points() if point.name == context.name]
    if len(found) != 1:
        wrong = (
            f"several installed packages provide {context.name!r}: {', '.join(map(_package, found))}"
            if found
            else f"no installed package provides {context.name!r}"
        )
        raise ConfigError([Problem(f"{key}.channel", wrong, file)])
    # Code of other packages can raise anything; the operator needs the name of the package.
    try:
        open_channel = found[0].load()
    except Exception as error:
        wrong = f"{_package(found[0])} cannot be loaded: {type(error).__name__}: {error}"
        raise ConfigError([Problem(f"{key}.channel", wrong, file)]) from error
    try:
        channel: Channel = open_channel(context)
    except ValueError as error:
        raise ConfigError([Problem(f"{key}.options", str(error), file)]) from error
    except Exception as error:
        wrong = f"{_package(found[0])} cannot create it: {type(error).__name__}: {error}"
        raise ConfigError([Problem(f"{key}.channel", wrong, file)]) from error
    return InstalledChannel(channel, context)


class InstalledChannel:
    """Passes the requests of one workflow to a channel, and keeps its failures from the gate."""

    def __init__(self, channel: Channel, context: "ChannelContext") -> None:
        self.name = context.name
        self._channel = channel
        self._workflow = context.workflow
        self._say = context.say

    def show_request(self, approval: Approval) -> None:
        """Show a new request of the channel's workflow."""
        self._show("show_request", approval)

    def show_outcome(self, approval: Approval) -> None:
        """Show the outcome of a request."""
        self._show("show_outcome", approval)

    def stop(self) -> None:
        """Stop the channel, if it has something to stop."""
        if isinstance(self._channel, Stoppable):
            self._guard("stop")

    def _show(self, method: str, approval: Approval) -> None:
        if (approval.channel, approval.workflow) == (self.name, self._workflow):
            self._guard(method, approval)

    def _guard(self, method: str, *arguments: Any) -> None:
        try:
            getattr(self._channel, method)(*arguments)
        except Exception as error:  # noqa: BLE001 - a channel that fails must not stop the gate
            # Not the exception's text: it may quote a secret of the channel.
            self._say(f"{self.name}: {method} failed: {type(error).__name__}")


def _entry_points() -> "Iterator[EntryPoint]":
    from importlib.metadata import entry_points  # 10 ms, only for configs that need it

    # The same package may be found twice on the path; the first one is the one that is imported.
    seen: set[tuple[str, str]] = set()
    for point in entry_points(group=GROUP):
        if point.name not in RESERVED and (point.name, point.value) not in seen:
            seen.add((point.name, point.value))
            yield point


def _package(point: "EntryPoint") -> str:
    distribution = point.dist
    return f"{distribution.name} ({point.value})" if distribution is not None else point.value
