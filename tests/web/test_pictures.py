"""Pages look as in the approved pictures, at four widths in both themes.

``make approve-pictures`` takes new ones after a wanted change.
"""

import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest
from playwright.sync_api import Browser, Page
from tests.support.approvals import a_store, put_approval
from tests.support.audit_cli import sample_events
from tests.support.consoles import LocalConsole, chromium, write_events
from tests.support.picture_sheets import (
    SCHEMES,
    compare_sheets,
    picture_context,
    take_sheet,
)
from tests.support.records import T0, blocked, decided, ended, started
from tools.source_tree import ROOT

from thoughtgate.core.approval import Vote
from thoughtgate.policy.call import Call
from thoughtgate.stores.pins import Pin

APPROVED = Path(__file__).parent / "approved"
TAKEN = ROOT / "build" / "pictures"
APPROVE = os.environ.get("APPROVE_PICTURES") == "1"

NOW = T0 + 1800
MAX_PIXELS = 6
"""Pixels of a sheet that may differ, each of them five by five of the page: what is round is drawn a
little differently by other versions of Chromium."""

PAGES = {
    "inbox": "/",
    "edit": "/approvals/edit",
    "together": "/approvals/together?rule=rules%5B0%5D",
    "overview": "/overview?span=1h",
    "traffic": "/traffic",
    "calls": "/calls",
    "call": "/calls/run-1.2",
    "policy": "/policy",
    "explain": "/policy/explain?server=files&name=delete_file",
    "servers": "/servers",
    "server": "/servers/server?name=files",
    "tool": "/servers/tool?server=files&kind=tool&name=read_file",
    "changes": "/servers/changes",
    "people": "/people",
    "settings": "/settings?show=given",
    "stop": "/stop",
}

CONFIG = """\
schema: 1
default: forward
rules:
  - {tool: "delete_*", action: approve, reason: gone is gone}
  - {tool: send, when: {amount: {gt: 100}}, action: deny, reason: too much}
"""

EDIT = {"path": "/srv/notes/deploy.md", "old_string": "1. test\n2. ask", "new_string": "1. test"}
LONG = {"path": "/srv/" + "notes/" * 30, "recursive": True}


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """A page that is signed in to a console with calls, requests and pins of fixed times."""
    # Pages show paths, so that this one must be equally long everywhere.
    with (
        tempfile.TemporaryDirectory(prefix="console-", dir="/tmp") as folder,
        pytest.MonkeyPatch.context() as patch,
        chromium() as browser,
    ):
        patch.setenv("TZ", "UTC")
        time.tzset()
        fill(Path(folder))
        with LocalConsole(Path(folder), CONFIG) as console:
            console.console.context.approvals.clock = lambda: NOW
            yield signed_in(browser, console)
    time.tzset()


def signed_in(browser: Browser, console: LocalConsole) -> Page:
    page = picture_context(browser).new_page()
    page.goto(console.console.new_link())
    page.wait_for_selector("text=Waiting for you")
    page.goto(console.base)
    return page


def fill(state: Path) -> None:
    """Write calls of every kind, requests, answers and pins."""
    events = sample_events()
    for number in range(60):
        ident, at = f"run-1.{number + 10}", T0 + 20 + number * 25
        server, tool = ("files", "read_file") if number % 3 else ("mail", "send")
        denied = number % 10 == 0
        events += [
            started(ident, at, server=server, tool=tool, preview=f'{{"path":"/srv/{number:03}"}}'),
            decided(ident, at, server=server, tool=tool, action="BLOCK" if denied else "ALLOW"),
            ended(
                *(ident, at + 0.1),
                server=server,
                tool=tool,
                latency_ms=20 + number,
                status="ERROR" if denied else "OK",
                error=blocked() if denied else None,
                is_error=number % 17 == 0,
            ),
        ]
    write_events(state, *events)
    store = a_store(state)
    times = {"created_at": NOW - 60, "expires_at": NOW + 240}
    for ident, arguments in (("edit", EDIT), ("long", LONG), ("third", {"path": "/tmp/a"})):
        call = Call("files", "tool", "delete_file", arguments, session="s1", definition="d1")
        text = json.dumps(arguments)
        put_approval(store, call, now=NOW - 60, id=ident, arguments=text, call_id=ident, **times)
    store.vote("third", [Vote("terminal:ann", approve=False, at=NOW - 5, reason="no")], NOW - 5)
    offered = '{"description":"Reads a file.","annotations":{"readOnlyHint":true}}'
    pin = Pin("files#1", "tool", "read_file", "d1", "accepted", offered, (), 0.0, "first seen")
    store.pins().add("files#1", [pin], (), NOW - 1000)
    changed = pin._replace(
        text=offered.replace("Reads", "Sends"), digest="d2", status="held", by=""
    )
    store.pins().add("files#1", [changed], (), NOW - 500)
    store.close()


@pytest.mark.long
@pytest.mark.parametrize("name", PAGES)
def test_a_page_looks_as_approved(page: Page, name: str) -> None:
    sheet = take_sheet(page, urljoin(page.url, PAGES[name]))
    approved, taken = APPROVED / f"{name}.png", TAKEN / f"{name}.png"
    if APPROVE:
        approved.write_bytes(sheet)
    TAKEN.mkdir(parents=True, exist_ok=True)
    taken.write_bytes(sheet)
    found = compare_sheets(page, sheet, approved.read_bytes())
    told = f"compare {taken} with {approved}; make approve-pictures approves all"
    assert found.sizes is None, told
    assert found.pixels <= MAX_PIXELS, told


@pytest.mark.long
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    "rule", ["button.deny { color: #9a6b00 }", "button.approve { color: red }"]
)
def test_another_colour_of_one_button_is_noticed(page: Page, scheme: str, rule: str) -> None:
    style = f"@media (prefers-color-scheme: {scheme}) {{ {rule} }}"
    sheet = take_sheet(page, urljoin(page.url, PAGES["inbox"]), style)
    found = compare_sheets(page, sheet, (APPROVED / "inbox.png").read_bytes())
    assert found.sizes is None
    assert found.pixels > MAX_PIXELS
