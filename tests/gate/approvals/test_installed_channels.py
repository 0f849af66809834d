"""Channels of installed packages: found, made, and kept from harming the gate."""

import contextlib
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.channel_packages import install

from thoughtgate.channels.channel import Channel, Stoppable
from thoughtgate.channels.channel_context import ChannelContext
from thoughtgate.config.settings import Settings, WorkflowSettings
from thoughtgate.core.approval import Approval
from thoughtgate.errors import ConfigError
from thoughtgate.gate.approvals.installed_channels import (
    InstalledChannel,
    installed_channels,
    open_installed_channel,
)
from thoughtgate.gate.approvals.open_channels import Reports, open_channels
from thoughtgate.testing.channel_contract import WORKFLOW, MemoryStore, sample_approval


class Loft:
    """A channel that notes what it is told."""

    def __init__(self, context: ChannelContext) -> None:
        self.name = context.name
        self.context = context
        self.told: list[str] = []

    def show_request(self, approval: Approval) -> None:
        self.told.append(f"request {approval.id}")

    def show_outcome(self, approval: Approval) -> None:
        self.told.append(f"outcome {approval.id}")


class Falling(Loft):
    def show_request(self, approval: Approval) -> None:
        raise OSError(f"secret {approval.id}")

    show_outcome = show_request

    def stop(self) -> None:
        raise RuntimeError("secret")


PACKAGE = """
def open_channel(context):
    if context.options.get("coop") == "none":
        raise ValueError("coop: there is none")
    if context.options.get("coop") == "broken":
        raise OSError("the roof is gone")
    return (context.name, context.workflow, dict(context.options))
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site"
    install(folder, "pigeon-post", "pigeon = pigeon_post:open_channel")
    (folder / "pigeon_post.py").write_text(PACKAGE, "utf-8")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "pigeon_post", raising=False)
    return folder


def context(name: str = "pigeon", said: list[str] | None = None, **options: Any) -> ChannelContext:
    store = contextlib.nullcontext(MemoryStore())
    say = (said if said is not None else []).append
    return ChannelContext(name, WORKFLOW, options, {}, lambda: store, say)


def refusal(made_with: ChannelContext) -> tuple[str, str]:
    with pytest.raises(ConfigError) as caught:
        open_installed_channel(made_with, "c.yaml")
    (problem,) = caught.value.problems
    assert problem.file == "c.yaml"
    return problem.key, problem.message


def test_channels_are_found_by_their_entry_points(site: Path) -> None:
    install(site, "greedy", "slack = x:y", "system = x:y", "raven = x:y")

    assert installed_channels() >= {"pigeon", "raven"}
    assert not installed_channels() & {"slack", "system"}


def test_each_workflow_has_a_channel_of_its_own(site: Path, tmp_path: Path) -> None:
    settings = Settings(
        "deny",
        approval={
            "one": WorkflowSettings("one", channel="pigeon", options={"coop": 1}),
            "two": WorkflowSettings("two", channel="pigeon"),
            "default": WorkflowSettings("default"),
        },
    )
    made = open_channels(settings, {}, str(tmp_path), reports=Reports())

    assert [vars(one)["_channel"] for one in made] == [
        ("pigeon", "one", {"coop": 1}),
        ("pigeon", "two", {}),
    ]


def test_what_cannot_be_made_is_a_config_error(site: Path) -> None:
    assert refusal(context(coop="none")) == (f"approval.{WORKFLOW}.options", "coop: there is none")
    assert refusal(context(coop="broken")) == (
        f"approval.{WORKFLOW}.channel",
        "pigeon-post (pigeon_post:open_channel) cannot create it: OSError: the roof is gone",
    )
    assert refusal(context("raven"))[1] == "no installed package provides 'raven'"
    install(site, "corvids", "raven = no_such_module:open_channel")
    assert "corvids (no_such_module:open_channel) cannot be loaded" in refusal(context("raven"))[1]
    install(site, "other-post", "pigeon = other:open_channel")
    assert "several installed packages provide 'pigeon'" in refusal(context())[1]


def test_a_package_that_is_found_twice_counts_once(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = install(tmp_path / "copy", "pigeon-post", "pigeon = pigeon_post:open_channel")
    monkeypatch.syspath_prepend(str(copy))

    assert isinstance(open_installed_channel(context()), InstalledChannel)


def test_only_requests_of_its_workflow_reach_a_channel() -> None:
    loft = Loft(context())
    channel: Channel = InstalledChannel(loft, loft.context)
    own = sample_approval("pigeon")
    for approval in (own, own._replace(workflow="other"), own._replace(channel="slack")):
        channel.show_request(approval)
        channel.show_outcome(approval)
    assert isinstance(channel, Stoppable)
    channel.stop()

    assert loft.told == [f"request {own.id}", f"outcome {own.id}"]


def test_failures_reach_the_operator_and_not_the_gate() -> None:
    said: list[str] = []
    falling = Falling(context(said=said))
    channel = InstalledChannel(falling, falling.context)
    channel.show_request(sample_approval("pigeon"))
    channel.show_outcome(sample_approval("pigeon"))
    channel.stop()

    assert said == [
        "pigeon: show_request failed: OSError",
        "pigeon: show_outcome failed: OSError",
        "pigeon: stop failed: RuntimeError",
    ]
