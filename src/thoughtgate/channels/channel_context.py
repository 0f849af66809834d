"""What the gate passes to a package that provides an approval channel.

A package names a function in the entry-point group ``thoughtgate.channels``. The gate calls
it once for each workflow that uses the channel, and gets a ``Channel`` back.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from thoughtgate.channels.channel import Channel
from thoughtgate.channels.delivery import DeliveryChannel, DeliveryClient, VoteStore


@dataclass(frozen=True, slots=True)
class ChannelContext:
    """One workflow that uses the channel, and how the channel reaches the gate.

    Example:
        >>> def open_channel(context: ChannelContext) -> Channel:
        ...     folder = context.options.get("folder")
        ...     if not isinstance(folder, str):
        ...         raise ValueError("folder: must be the path of a directory")
        ...     return context.deliver(FolderClient(folder))
    """

    name: str
    """The channel's name: the entry point's, and the first part of its reviewers' identities."""
    workflow: str
    """The name of the workflow."""
    options: Mapping[str, Any]
    """The workflow's ``options``. They are not checked yet: raise ValueError for a wrong one."""
    environ: Mapping[str, str] = field(repr=False)
    """The gate's environment. Options whose names end in ``_env`` name variables with secrets."""
    open_store: Callable[[], AbstractContextManager[VoteStore]] = field(repr=False)
    """Opens the approval store, which counts votes. Each thread must open its own."""
    say: Callable[[str], None] = field(repr=False)
    """Reports a failure to the operator, in one line without secrets."""

    def deliver(self, client: DeliveryClient) -> Channel:
        """Return a channel with a thread that sends requests and collects votes with ``client``.

        The thread starts with the first request. It tries again after a failure, continues with
        the same requests after a restart, and counts each vote once.
        """
        return DeliveryChannel(self.name, {self.workflow: client}, self.open_store, self.say)
