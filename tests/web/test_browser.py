"""The console in a real Chromium, before real gates: what a person does, a person can do."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from tests.support.audit_cli import sample_events
from tests.support.commands import AGENT
from tests.support.consoles import LocalConsole, RunningConsole, chromium, write_events
from tests.support.shim_peer import ShimPeer
from tests.support.waiting import wait_for
from tests.support.wraps import HOLD, Machine, kind_of, text_of
from tests.web.conftest import Gate
from tools.source_tree import ROOT

from thoughtgate.channels.console_channel import identity
from thoughtgate.core.approval import Vote
from thoughtgate.stores.pins import Pin
from thoughtgate.web.console_context import PAGES as CONSOLE_PAGES

AXE = ROOT / ".node" / "node_modules" / "axe-core" / "axe.min.js"
WIDTHS = (360, 768, 1180, 1600)
SCHEMES: tuple[Literal["light"], Literal["dark"]] = ("light", "dark")
AXE_RULES = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']"
PAGES = (
    *(address for address, _ in CONSOLE_PAGES),
    "/servers/changes",
    "/servers/server?name=files",
    "/servers/tool?server=files&kind=tool&name=read",
    "/settings?show=given",
    "/approvals/together?rule=rules%5B0%5D",
    "/policy/explain?server=files&name=delete_file",
)

RULES = 'schema: 1\ndefault: forward\nrules:\n  - {tool: "delete_*", action: approve, reason: gone is gone}\n'


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for this file and no other: its loop runs in this thread until it is closed."""
    with chromium() as started:
        yield started


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    opened = browser.new_context()
    opened.set_default_timeout(10_000)
    yield opened
    opened.close()


@pytest.fixture
def page(context: BrowserContext, console: LocalConsole) -> Page:
    """A page that is signed in to a console over a gate of the test."""
    return signed_in(context, console.console.new_link())


def signed_in(context: BrowserContext, link: str) -> Page:
    page = context.new_page()
    page.on("pageerror", lambda error: pytest.fail(f"a script failed: {error}"))
    page.goto(link)
    expect(page.get_by_role("heading", name="Waiting for you")).to_be_visible()
    return page


@pytest.fixture
def held(tmp_path: Path) -> Iterator[ShimPeer]:
    """A real shim that holds a real call: request 2."""
    with ShimPeer(tmp_path, RULES, agent=AGENT) as peer:
        peer.send({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        peer.receive_answer(1)
        yield peer


def opened(page: Page, text: str) -> Locator:
    """Open the request whose row in the list has a text, and return its details."""
    page.locator(".requests li", has_text=text).get_by_role("link").click()
    card = page.locator(".ask", has_text=text)
    expect(card).to_be_visible()
    return card


def call(peer: ShimPeer, ident: int, note: str) -> None:
    params = {"name": "delete_note", "arguments": {"name": note}}
    peer.send({"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params})


def test_a_held_call_of_a_real_shim_is_approved_and_denied_by_clicking(
    context: BrowserContext, held: ShimPeer
) -> None:
    with RunningConsole(held.state, "-c", str(held.folder / "thoughtgate.yaml")) as console:
        page = signed_in(context, console.link)
        call(held, 2, "draft")
        card = opened(page, "draft")
        expect(card).to_contain_text("gone is gone")
        assert held.calls_reached() == []
        card.get_by_label("Reason").fill("nobody needs it")
        card.get_by_role("button", name="Approve").click()

        assert text_of(held.receive_answer(2)) == "deleted draft"
        expect(page.locator(".notice")).to_contain_text("delete_note")
        expect(page.locator("#answered")).to_contain_text("nobody needs it")

        call(held, 3, "budget")
        opened(page, "budget").get_by_role("button", name="Deny").click()

        assert kind_of(held.receive_answer(3)) == "approval_rejected"
        assert held.calls_reached() == ["delete_note"]
    decided = held.events("approval_decided")
    assert [one["approval"]["decided_by"] for one in decided] == [identity()] * 2
    assert [one["approval"]["outcome"] for one in decided] == ["approved", "rejected"]


def test_a_held_call_under_wrap_is_answered_at_the_gates_own_address(
    context: BrowserContext, tmp_path: Path
) -> None:
    machine = Machine(tmp_path, HOLD)
    machine.write_sample()
    with machine.wrap() as wrapped:
        wrapped.open()
        link = re.search(r"console +(http://\S+)", wrapped.stderr)
        assert link is not None, wrapped.stderr
        page = signed_in(context, link.group(1))
        wrapped.tell_call("delete_note", {"name": "draft"})
        opened(page, "draft").get_by_role("button", name="Approve").click()

        assert text_of(wrapped.peer.receive(20.0)["said"]) == "deleted draft"
        page.goto(link.group(1))
        expect(page.locator("body")).to_contain_text("works once")
        assert wrapped.finish() == 0
    refused = machine.events("agent_auth_rejected")
    assert [one["agent"]["method"] for one in refused] == ["console"]
    assert "sign-in link" in refused[0]["agent"]["reason"]


def test_a_remembered_answer_answers_the_next_call_and_can_be_taken_back(
    context: BrowserContext, held: ShimPeer
) -> None:
    with RunningConsole(held.state) as console:
        page = signed_in(context, console.link)
        held.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        call(held, 2, "draft")
        card = opened(page, "draft")
        card.get_by_label("Remember approval").select_option("1h")
        card.locator("select[name=scope]").select_option("tool")
        card.get_by_role("button", name="Approve").click()
        held.receive_answer(2)

        call(held, 3, "budget")
        assert text_of(held.receive_answer(3)) == "deleted budget"

        page.get_by_role("link", name="People").click()
        expect(page.locator("tbody tr").first).to_contain_text("any arguments")
        page.get_by_role("button", name="Revoke").click()
        expect(page.locator("main")).to_contain_text("was revoked")

        call(held, 4, "welcome")
        page.get_by_role("link", name="Inbox").click()
        opened(page, "welcome").get_by_role("button", name="Deny").click()
        assert kind_of(held.receive_answer(4)) == "approval_rejected"


def test_questions_come_and_go_without_a_reload(page: Page, gate: Gate) -> None:
    ident = gate.hold("format_disk")
    card = opened(page, "format_disk")
    page.evaluate("window.untouched = true")
    expect(page).to_have_title(re.compile(r"^\(1\) "))

    gate.store.vote(ident, [Vote("terminal:ann", approve=False, at=time.time())], time.time())
    expect(card.locator("header .chip")).to_have_text("denied")
    expect(card.get_by_role("button", name="Approve")).to_be_hidden()
    expect(page).not_to_have_title(re.compile(r"^\("))
    assert page.evaluate("window.untouched")


def test_what_is_half_typed_survives_the_news(page: Page, gate: Gate) -> None:
    gate.hold("one")
    field = opened(page, "one").locator("input[name=reason]")
    field.fill("because of")
    gate.hold("two")
    expect(page.locator(".requests li")).to_have_count(2)

    expect(field).to_have_value("because of")
    expect(page.locator(".ask")).to_contain_text("one")
    expect(page.locator(".requests li").first).to_contain_text("one")


def test_the_countdown_runs_and_a_question_that_expired_is_closed(page: Page, gate: Gate) -> None:
    ident = gate.hold(workflow="soon")
    row = page.locator(f".requests li[data-key={ident}]")
    expect(row).to_be_visible()

    wait_for(gate.decided)
    expect(row.locator(".chip")).to_have_text("expired")


def test_the_keyboard_alone_is_enough(page: Page, gate: Gate) -> None:
    first, second = gate.hold("one"), gate.hold("two")
    expect(page.locator(".requests li")).to_have_count(2)
    focus: Callable[[], str] = lambda: page.evaluate(  # noqa: E731 - asked again and again
        "document.activeElement.closest('[data-key]')?.dataset.key"
    )

    page.keyboard.press("j")
    assert focus() == first
    page.keyboard.press("j")
    assert focus() == second
    page.keyboard.press("k")
    assert focus() == first
    page.keyboard.press("Enter")
    expect(page.locator(f"#ask-{first}")).to_be_visible()
    page.wait_for_load_state("domcontentloaded")  # The script that handles keys runs before it.
    assert not page.evaluate("document.activeElement.matches('button')"), "nothing is preselected"
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    assert gate.decided() == {}, "approving takes more than the easiest key"
    page.keyboard.press("Shift+A")
    assert gate.decided() == {}, "a key alone must not decide"
    page.keyboard.press("Enter")
    expect(page.locator(".notice")).to_contain_text("approved")
    assert gate.decided() == {"run.1": True}
    expect(page.locator(".ask")).to_have_count(0)
    page.wait_for_load_state("domcontentloaded")

    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator(f"#ask-{second}")).to_be_visible()
    page.wait_for_load_state("domcontentloaded")
    page.keyboard.press("d")
    page.keyboard.type("no, jad")
    page.keyboard.press("Enter")
    expect(page.locator(".notice")).to_contain_text("denied")
    assert gate.decided() == {"run.2": False}


def test_enter_in_the_reason_denies_and_never_approves(page: Page, gate: Gate) -> None:
    gate.hold()
    opened(page, "delete_file").locator("input[name=reason]").press("Enter")
    expect(page.locator(".notice")).to_contain_text("denied")

    assert gate.decided() == {"run.1": False}


@pytest.mark.long
@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed: make node")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_is_inaccessible(
    context: BrowserContext,
    console: LocalConsole,
    gate: Gate,
    tmp_path: Path,
    scheme: Literal["light", "dark"],
) -> None:
    ident = gate.hold("delete_note", {"name": "draft", "lines": ["a", "b"]})
    other = gate.hold("edit_note", {"old_string": "a\nb", "new_string": "a\nc", "path": "/x"})
    both = f"/approvals/together?rule=rules%5B0%5D&id={ident}&id={other}"
    now = time.time()
    write_events(tmp_path, *(event._replace(at=now - 60) for event in sample_events()))
    page = signed_in(context, console.console.new_link())
    page.emulate_media(color_scheme=scheme)
    paths = (*PAGES, f"/approvals/{ident}", f"/approvals/{other}", both, "/calls/run-1.2")
    paths += (
        f"/approvals/{ident}/arguments",
        "/traffic?every=1",
        "/overview?span=30d&server=files",
    )
    paths += ("/calls?status=ERROR", "/calls?since=soon", "/calls?text=absent", "/nowhere")
    found = [one for path in paths for one in violations(page, console.base + path)]
    page.context.clear_cookies()
    found += violations(page, f"{console.base}/")
    assert found == []


@pytest.mark.long
@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed: make node")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_is_inaccessible_or_too_wide_at_any_width(
    context: BrowserContext,
    console: LocalConsole,
    gate: Gate,
    width: int,
    scheme: Literal["light", "dark"],
) -> None:
    gate.hold("delete_note", {"name": "draft"})
    record_files_server(console, gate)
    page = signed_in(context, console.console.new_link())
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    problems = list[object]()
    for path in PAGES:
        problems += violations(page, console.base + path)
        extent = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        problems += [(path, "too wide")] if page.evaluate(extent) > 0 else []
    assert problems == []


LAYOUT = """() => {
  const found = [];
  const name = (one) => one.tagName.toLowerCase() + (one.className.baseVal ?? one.className).replace(/(^| +)(?=.)/g, '.') + ' ' + one.textContent.trim().slice(0, 40);
  for (const one of document.querySelectorAll('body *')) {
    const style = getComputedStyle(one), box = one.getBoundingClientRect();
    if (!box.width || !box.height || style.visibility === 'hidden' || one.closest('.sr, .skip, svg')) continue;
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const folded = one.closest('.scroll, .log, nav, pre');
    if (own && parseFloat(style.fontSize) < 12) found.push('text smaller than 12 px: ' + name(one));
    if (!folded && box.right > document.documentElement.clientWidth + 1) found.push('too far right: ' + name(one));
    if (one.matches('button, select, input:not([type=hidden])') && Math.min(box.width, box.height) < 24 && !one.matches('[type=checkbox], [type=radio]')) found.push('smaller than 24 px: ' + name(one));
  }
  const blocks = [...document.querySelectorAll('main > *, .tiles > *, .grid > *')].filter((one) => one.getBoundingClientRect().height);
  for (const one of blocks) for (const two of blocks) {
    if (one === two || one.parentElement !== two.parentElement) continue;
    const a = one.getBoundingClientRect(), b = two.getBoundingClientRect();
    if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1 && one.compareDocumentPosition(two) & 4) found.push('overlap: ' + name(one) + ' and ' + name(two));
  }
  return found;
}"""
"""Returns what is wrong with the boxes of a page: text below 12 px, targets below 24 px, content
beyond the right edge, and blocks on top of each other. Pixels are not compared, because fonts
differ between machines."""


@pytest.mark.long
@pytest.mark.parametrize("width", WIDTHS)
def test_the_layout_of_every_page_holds_at_any_width(
    context: BrowserContext, console: LocalConsole, gate: Gate, width: int
) -> None:
    ident = gate.hold("delete_note", {"name": "draft", "path": "/srv/" + "notes/" * 30})
    record_files_server(console, gate)
    page = signed_in(context, console.console.new_link())
    page.set_viewport_size({"width": width, "height": 800})
    problems = list[tuple[str, str, str]]()
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        for path in (*PAGES, f"/approvals/{ident}", "/calls/run-1.2"):
            page.goto(console.base + path)
            problems += [(scheme, path, one) for one in page.evaluate(LAYOUT)]
    assert problems == []


def record_files_server(console: LocalConsole, gate: Gate) -> None:
    """Have the record and the pins know the server and the tool that ``PAGES`` names."""
    now = time.time()
    write_events(console.state, *(event._replace(at=now - 60) for event in sample_events()))
    text = '{"description":"Reads a file."}'
    pin = Pin("files#1", "tool", "read", "d1", "accepted", text, (), 0.0, "first seen")
    gate.store.pins().add("files#1", [pin], (), 1.0)
    changed = pin._replace(text=text.replace("Reads", "Sends"), digest="d2", status="held", by="")
    gate.store.pins().add("files#1", [changed], (), 2.0)


def violations(page: Page, address: str) -> list[object]:
    """Return what axe-core finds wrong with a page."""
    page.goto(address)
    page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("axe.run(document, {runOnly: RULES})".replace("RULES", AXE_RULES))
    return [
        (address, one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]
    ]


def test_every_page_fits_a_phone(page: Page, gate: Gate) -> None:
    ident = gate.hold(
        "delete_" + "x" * 80, {"path": "/very/long/" + "path" * 60, "nested": {"list": ["y" * 300]}}
    )
    page.set_viewport_size({"width": 360, "height": 740})
    base = page.url.rstrip("/")
    for path in (*PAGES, f"/approvals/{ident}"):
        page.goto(base + path)
        page.evaluate(  # Where files lie is another matter on every machine.
            "document.querySelectorAll('p code').forEach((one) => one.textContent = 'x'.repeat(200))"
        )
        too_wide = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert too_wide <= 0, path
    page.goto(base)
    opened(page, "delete_")
    button = page.get_by_role("button", name="Approve").bounding_box()
    assert button is not None
    assert button["height"] >= 40
    page.get_by_role("button", name="Approve").click()
    assert wait_for(gate.decided) == {"run.1": True}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_schemes(page: Page, gate: Gate, scheme: str) -> None:
    gate.hold()
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.reload()
    colours = page.evaluate(
        """() => ['.ask h2', '.facts dd', '.facts dt', '.approve', '.deny', '.left time'].map((part) => {
          const found = document.querySelector(part), style = getComputedStyle(found);
          let ground = found;
          while (getComputedStyle(ground).backgroundColor === 'rgba(0, 0, 0, 0)') ground = ground.parentElement;
          return [style.color, getComputedStyle(ground).backgroundColor];
        })"""
    )
    for text, ground in colours:
        assert contrast(text, ground) >= 4.5, (text, ground)


def contrast(text: str, ground: str) -> float:
    """Return the contrast of two colours as WCAG reckons it."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        red, green, blue = (
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    high, low = sorted((luminance(text), luminance(ground)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_everything_works_without_script(
    browser: Browser, console: LocalConsole, gate: Gate
) -> None:
    context = browser.new_context(java_script_enabled=False)
    context.set_default_timeout(10_000)
    try:
        page = context.new_page()
        gate.hold()
        page.goto(console.console.new_link())
        page.get_by_label("Reason").fill("plain form")
        page.get_by_role("button", name="Approve").click()
        expect(page.locator(".notice")).to_contain_text("approved")
        assert gate.decided() == {"run.1": True}
    finally:
        context.close()


def test_new_traffic_appears_without_a_reload(context: BrowserContext, held: ShimPeer) -> None:
    with RunningConsole(held.state) as console:
        page = signed_in(context, console.link)
        page.get_by_role("link", name="Traffic").click()
        expect(page.locator("[data-state]")).to_have_text("live")
        params = {"name": "echo", "arguments": {"text": "out of the blue"}}
        held.ask({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params})

        expect(page.locator("#traffic")).to_contain_text("out of the blue")
        page.get_by_role("link", name="echo").first.click()
        expect(page.locator("main")).to_contain_text("Events")


def test_new_calls_appear_on_the_calls_page_without_a_reload(
    context: BrowserContext, held: ShimPeer
) -> None:
    with RunningConsole(held.state) as console:
        page = signed_in(context, console.link)
        page.get_by_role("link", name="Calls").click()
        expect(page.locator("[data-state]")).to_have_text("live")
        page.evaluate("window.untouched = true")
        params = {"name": "echo", "arguments": {"text": "out of the blue"}}
        held.ask({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params})

        expect(page.locator("#calls")).to_contain_text("out of the blue")
        assert page.evaluate("window.untouched")
        page.get_by_role("link", name="echo").first.click()
        expect(page.locator("main")).to_contain_text("Events")


def test_a_candidate_is_uploaded_in_a_browser(page: Page, tmp_path: Path) -> None:
    candidate = tmp_path / "candidate.yaml"
    candidate.write_text("schema: 1\ndefault: deny\n")
    page.get_by_role("link", name="Policy").click()
    page.locator("input[type=file]").set_input_files(candidate)
    page.get_by_role("button", name="Compare and replay").click()

    expect(page.locator("#try")).to_contain_text("tightens")


def test_a_page_of_another_site_cannot_decide(
    page: Page, context: BrowserContext, console: LocalConsole, gate: Gate, tmp_path: Path
) -> None:
    """The browser is signed in; the attacker knows the address and the approval's id."""
    path = f"/approvals/{gate.hold()}"
    attack = tmp_path / "evil.html"
    attack.write_text(
        f'<form id=f method=post action="{console.base}{path}"><input name=decision value=approve>'
        f'<input name=token value=guess></form><iframe src="{console.base}/"></iframe><script>f.submit()</script>'
    )
    evil = context.new_page()
    evil.goto(attack.as_uri())
    wait_for(lambda: [one for one in console.refusals if one[1] == path])

    assert gate.decided() == {}


@pytest.mark.long
def test_nothing_is_loaded_from_outside_and_no_policy_is_broken(
    context: BrowserContext, console: LocalConsole, gate: Gate
) -> None:
    ident = gate.hold()
    record_files_server(console, gate)
    asked: list[str] = []
    broken: list[str] = []
    page = context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.on(
        "console", lambda message: broken.append(message.text) if message.type == "error" else None
    )
    page.goto(console.console.new_link())
    expect(page.get_by_role("heading", name="Waiting for you")).to_be_visible()
    for path in (*PAGES, f"/approvals/{ident}"):
        page.goto(console.base + path)

    assert {url for url in asked if not url.startswith(console.base)} == set()
    assert broken == []
