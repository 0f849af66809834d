"""Screenshots of the console, of real calls behind real gates: ``make console-screenshots``.

Starts sample servers behind shims and behind ``serve``, makes calls, answers some through the
console, leaves others waiting, and takes pictures in Debian's Chromium, light, dark and at a phone's
width. Those that the documentation shows are also copied to ``docs/images``.
"""

import argparse
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from thoughtgate.testing.scripted_agent import ScriptedAgent

CHROMIUM = "/usr/bin/chromium"
AGENT = ("sh", "-c", 'cat | "$@" | cat', "agent")
"""An agent that starts a gate: whoever started a gate cannot answer in the console."""

PATIENCE_S = 60.0
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")

AGENT = ("sh", "-c", 'cat | "$@" | cat', "agent")
"""Starts the command that follows on pipes of its own, as an agent does."""

CONFIG = """\
schema: 1
default: forward
servers:
  "*": {expose: {block: ["env", "fail"]}}
rules:
  - {tool: "delete_*", action: approve, reason: what is deleted is gone}
  - {tool: transfer, when: {amount: {gt: 100}}, action: approve, approval: finance, reason: large transfers}
  - {tool: write_note, action: approve, reason: it overwrites}
  - {tool: big, action: deny, reason: no bulk reads}
limits:
  - {tool: add, rate: 3/m}
approval:
  default: {timeout: 20m}
  finance: {timeout: 10m, required: 2}
"""

SCRIPT = """\
#!/usr/bin/env bash
set -euo pipefail
for host in web-1 web-2 web-3; do
  ssh "$host" 'systemctl stop app && rm -rf /srv/app/releases/old && systemctl start app'
done
echo "released"
"""

SERVED = """\
schema: 1
default: forward
servers:
  calendar: {{command: {python}, args: [-m, thoughtgate.testing.sample_server]}}
  search: {{command: {python}, args: [-m, thoughtgate.testing.sample_server]}}
  warehouse: {{command: /opt/warehouse/bin/mcp-server, eager: true}}
"""
"""The config of the hub; one of its servers does not exist."""

PAGES = {
    "overview": "/overview?span=1h",
    "traffic": "/traffic",
    "calls": "/calls",
    "policy": "/policy",
    "servers": "/servers",
    "server": "/servers/server?name=search",
    "tool": "/servers/tool?server=search&kind=tool&name=echo",
    "people": "/people",
    "gates": "/gates",
    "settings": "/settings",
}

IN_DOCS = ("overview", "inbox-light", "calls", "servers", "server")

SECRET = "ghp_" + "0123456789abcdef0123456789abcdef0123"

HELD: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("notes", "delete_note", {"name": "budget"}),
    ("bank", "transfer", {"amount": 2400, "to": "Ada's Hardware, invoice 2931"}),
    (
        "notes",
        "write_note",
        {
            "name": "release.sh",
            "text": SCRIPT,
            "options": {"mode": "0755", "overwrite": True, "api_key": SECRET},
            "tags": ["ops", "release"],
        },
    ),
    (
        "notes",
        "write_note",
        {
            "name": "deploy.md",
            "edits": [
                {
                    "old_string": "# Deploy\n\n1. run the tests\n2. ask Ann\n3. release",
                    "new_string": "# Deploy\n\n1. run the tests\n2. release at night",
                }
            ],
        },
    ),
)


def main() -> int:
    """Take the pictures."""
    parser = argparse.ArgumentParser("console_screenshots", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("build/console-screenshots"))
    parser.add_argument(
        "--docs", type=Path, help="copy what the documentation shows to this folder"
    )
    given = parser.parse_args()
    out: Path = given.out
    if not Path(CHROMIUM).exists():
        print(f"there is no {CHROMIUM}: make chromium installs it", file=sys.stderr)
        return 2
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        place = Path(folder)
        (place / "thoughtgate.yaml").write_text(CONFIG, "utf-8")
        environ = {**os.environ, "THOUGHTGATE_STATE_DIR": str(place / "state")}
        link = stack.enter_context(console(place, environ))
        agents = {
            name: stack.enter_context(agent(name, place, environ)) for name in ("notes", "bank")
        }
        agents["hub"] = stack.enter_context(hub(place, environ))
        make_traffic(agents)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            take_pictures(browser, link, agents, out)
            browser.close()
    for name in IN_DOCS if given.docs else ():
        shutil.copy(out / f"{name}.png", given.docs / f"console-{name.removesuffix('-light')}.png")
    print("\n".join(str(path) for path in sorted(out.glob("*.png"))))
    return 0


def program(*args: str) -> list[str]:
    """Return the command itself, in this interpreter."""
    return [sys.executable, "-m", "thoughtgate.cli.entry", *args]


@contextlib.contextmanager
def console(place: Path, environ: dict[str, str]) -> Iterator[str]:
    """Run a console and give its sign-in link."""
    command = program("console", "--json", "-c", str(place / "thoughtgate.yaml"))
    process = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, cwd=place)
    assert process.stdout is not None
    try:
        if not select.select([process.stdout], [], [], PATIENCE_S)[0]:
            raise TimeoutError(f"the console has not started within {PATIENCE_S:.0f} s")
        line = process.stdout.readline()  # no deadline: it has begun to come
        yield json.loads(line)["url"]
    finally:
        process.terminate()
        process.stdout.close()
        process.wait(PATIENCE_S)


@contextlib.contextmanager
def agent(name: str, place: Path, environ: dict[str, str]) -> Iterator[ScriptedAgent]:
    """Run an agent with one sample server behind a shim."""
    server = [sys.executable, "-m", "thoughtgate.testing.sample_server"]
    config = str(place / "thoughtgate.yaml")
    state = ["--state-dir", environ["THOUGHTGATE_STATE_DIR"]]
    # Through a shell: the console must not be a sibling that the agent itself has started.
    command = [*AGENT, *program("shim", "--server-id", name, "-c", config, *state), "--", *server]
    environ = {**environ, "THOUGHTGATE_AGENT_ID": "claude-code"}
    with ScriptedAgent([*AGENT, *command], env=environ) as opened:
        opened.open()
        opened.ask("tools/list")
        opened.ask("resources/list")
        yield opened


@contextlib.contextmanager
def hub(place: Path, environ: dict[str, str]) -> Iterator[ScriptedAgent]:
    """Run an agent with a hub in front of three servers."""
    config = place / "served.yaml"
    config.write_text(SERVED.format(python=sys.executable), "utf-8")
    state = ["--state-dir", environ["THOUGHTGATE_STATE_DIR"]]
    command = program("serve", "--stdio", "-c", str(config), *state)
    with ScriptedAgent(
        [*AGENT, *command], env={**environ, "THOUGHTGATE_AGENT_ID": "cursor"}
    ) as opened:
        opened.open()
        opened.ask("tools/list")
        yield opened


def make_traffic(agents: dict[str, ScriptedAgent]) -> None:
    """Make calls of every kind that need nobody."""
    notes, bank = agents["notes"], agents["bank"]
    for number in range(14):
        notes.call("echo", {"text": f"step {number} of the release"})
        notes.call("read_note", {"name": ("welcome", "budget", "draft")[number % 3]})
        if number % 2:
            bank.call("transfer", {"amount": 5 + number, "to": "coffee"})
    for number in range(5):
        bank.call("add", {"a": number, "b": 1})
        agents["hub"].call("search.echo", {"text": f"invoice {2900 + number}"})
    agents["hub"].call("search.fail")
    notes.call("big", {"bytes": 100})
    notes.call("env")
    notes.call("read_note", {"name": "lost"})


def take_pictures(browser: Browser, link: str, agents: dict[str, ScriptedAgent], out: Path) -> None:
    """Answer a few questions, let others wait, and look at every page."""
    page = browser.new_page(viewport={"width": 1180, "height": 860}, color_scheme="light")
    page.goto(link)
    page.wait_for_selector("text=Waiting for you")
    answer(page, agents["notes"], "draft", "approve", "an old one")
    answer(page, agents["notes"], "welcome", "deny", "people still read it")
    remember(page, agents["notes"])
    for server, tool, arguments in HELD:
        agents[server].send("tools/call", {"name": tool, "arguments": arguments})
    page.wait_for_selector(f".requests li:nth-of-type({len(HELD)})")
    base = page.url.split("?", maxsplit=1)[0].rstrip("/")
    page.goto(f"{base}/")
    shoot(page, out / "inbox-light.png")
    approval = page.locator(".requests a").nth(2).get_attribute("href")
    page.emulate_media(color_scheme="dark")
    shoot(page, out / "inbox-dark.png")
    page.goto(f"{base}/overview?span=1h")
    page.click("text=Verify now")
    page.wait_for_selector("text=lines verified")
    page.emulate_media(color_scheme="light")
    for name, path in PAGES.items():
        page.goto(f"{base}{path}")
        shoot(page, out / f"{name}.png")
    page.emulate_media(color_scheme="dark")
    for name in ("overview", "servers", "traffic"):
        page.goto(f"{base}{PAGES[name]}")
        shoot(page, out / f"{name}-dark.png")
    page.emulate_media(color_scheme="light")
    page.goto(f"{base}/calls?tool=delete_note")
    page.locator("tbody a").first.click()
    shoot(page, out / "call.png", whole=True)
    page.goto(f"{base}/approvals/together?rule=rules%5B2%5D")
    for box in page.locator(".choices input").all():
        box.check()
    page.get_by_role("button", name="Review").click()
    shoot(page, out / "together.png", whole=True)
    page.set_viewport_size({"width": 390, "height": 844})
    for name, path in (
        ("inbox", "/"),
        ("approval", approval or "/"),
        ("traffic", "/traffic"),
        ("calls", "/calls"),
        *PAGES.items(),
    ):
        page.goto(f"{base}{path}")
        shoot(page, out / f"phone-{name}.png", whole=name in {"approval", *PAGES})


def answer(page: Page, agent_: ScriptedAgent, note: str, decision: str, reason: str) -> None:
    """Let the agent ask about a note and answer in the browser."""
    ident = agent_.send("tools/call", {"name": "delete_note", "arguments": {"name": note}})
    page.click(f".requests li:has-text('{note}') a")
    page.wait_for_selector(f".ask:has-text('{note}') input[name=reason]")
    page.fill(f".ask:has-text('{note}') input[name=reason]", reason)
    page.click(f".ask:has-text('{note}') button.{decision}")
    agent_.wait_for(ident)


def remember(page: Page, agent_: ScriptedAgent) -> None:
    """Approve and have it remembered."""
    call = {"name": "write_note", "arguments": {"name": "log", "text": "began"}}
    ident = agent_.send("tools/call", call)
    page.click(".requests li:has-text('write_note') a")
    page.wait_for_selector(".ask select[name=remember]")
    page.select_option(".ask select[name=remember]", "1h")
    page.click(".ask button.approve")
    agent_.wait_for(ident)
    agent_.ask("tools/call", call)


def shoot(page: Page, path: Path, *, whole: bool = False) -> None:
    """Take one picture, once the page is at rest."""
    page.wait_for_load_state("load")
    time.sleep(0.3)
    page.screenshot(path=path, full_page=whole)


if __name__ == "__main__":
    sys.exit(main())
