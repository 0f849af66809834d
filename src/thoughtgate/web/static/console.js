// Live updates, countdowns and keys. Everything works without this file, by loading a page again.
"use strict";

(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const one = (selector, root = document) => root.querySelector(selector);
  const main = one("#main");

  all("[data-needs-script]").forEach((part) => { part.hidden = false; });

  // Time that is left, and time that has passed.

  const pad = (number) => String(number).padStart(2, "0");
  const countdown = (seconds) => {
    const left = Math.max(0, Math.round(seconds));
    const hours = Math.floor(left / 3600);
    const minutes = Math.floor((left % 3600) / 60);
    return hours ? `${hours}:${pad(minutes)}:${pad(left % 60)}` : `${minutes}:${pad(left % 60)}`;
  };
  const ago = (seconds) => {
    const passed = Math.max(0, Math.round(seconds));
    if (passed < 60) return `${passed} s ago`;
    if (passed < 3600) return `${Math.floor(passed / 60)} min ago`;
    if (passed < 86400) return `${Math.floor(passed / 3600)} h ago`;
    return `${Math.floor(passed / 86400)} d ago`;
  };
  const tick = () => {
    const now = Date.now() / 1000;
    all("progress[data-until]").forEach((bar) => { bar.value = Math.max(0, bar.dataset.until - now); });
    all("time[data-until]").forEach((time) => {
      const left = time.dataset.until - now;
      time.textContent = countdown(left);
      time.parentElement.classList.toggle("soon", left < 30);
    });
    all("time[data-at]").forEach((time) => { time.textContent = ago(now - time.dataset.at); });
  };
  setInterval(tick, 1000);

  // The inbox. Requests that are listed stay where they are, new ones come at the end, and the
  // open one stays open: nobody must press a button that moved under the pointer or now means
  // another request, or lose a reason that was half typed.

  const showWaiting = (count) => {
    all("[data-waiting].badge").forEach((badge) => {
      badge.textContent = count;
      badge.hidden = !count;
    });
    document.title = document.title.replace(/^\(\d+\) /, "");
    if (count) document.title = `(${count}) ${document.title}`;
  };
  const settle = (card, outcome) => {
    if (card.classList.contains("settled")) return;
    card.classList.add("settled");
    all("button, input, select", card).forEach((control) => { control.disabled = true; });
    const left = one(".left", card);
    if (left) left.replaceWith(outcome || document.createTextNode("closed"));
    const bar = one("progress", card);
    if (bar) bar.remove();
  };
  const merge = (text) => {
    const fresh = new DOMParser().parseFromString(text, "text/html");
    const list = one("#requests .requests");
    showWaiting(Number(one("#fresh", fresh).dataset.waiting));
    const answered = one("#answered", fresh);
    const outcomeOf = (key) => {
      const row = all("tr[data-id]", answered).find((found) => found.dataset.id === key);
      return row ? one(".chip", row).cloneNode(true) : null;
    };
    const find = (key) => all(".requests > li", fresh).find((row) => row.dataset.key === key);
    all(".requests > li, .ask").forEach((part) => {
      const now = find(part.dataset.key);
      const changed = one("[data-changed]", part);
      if (!now) { if (one(".left", part)) settle(part, outcomeOf(part.dataset.key)); }
      else if (changed && now.dataset.rev !== part.dataset.rev) changed.hidden = false;
    });
    if (!list) return;
    const known = new Set(all("li", list).map((row) => row.dataset.key));
    all(".requests > li", fresh).forEach((row) => {
      if (!known.has(row.dataset.key)) list.append(document.importNode(row, true));
    });
    one("#requests [data-empty]").hidden = Boolean(one("li", list));
    one("#requests [data-together]").replaceChildren(...one("[data-together]", fresh).childNodes);
    if (one(".panes.listing")) one("#answered").replaceChildren(...answered.childNodes);
    tick();
  };
  let asking = null;
  const refresh = () => {
    if (asking) asking.abort();
    asking = new AbortController();
    fetch("/inbox", { signal: asking.signal, credentials: "same-origin" })
      .then((answer) => (answer.ok ? answer.text() : Promise.reject(answer.status)))
      .then(merge)
      .catch((error) => { if (error === 401) location.reload(); });
  };

  // Traffic.

  const rows = one("#traffic");
  let paused = false;
  const kept = [];
  const insert = (html) => {
    const holder = document.createElement("tbody");
    holder.innerHTML = html;
    const row = holder.firstElementChild;
    if (!row) return;
    row.classList.add("fresh");
    rows.prepend(row);
    while (rows.children.length > Number(rows.dataset.rows)) rows.lastElementChild.remove();
    const empty = one("[data-empty]");
    if (empty) empty.hidden = true;
  };
  const pause = one("[data-pause]");
  if (pause) {
    pause.addEventListener("click", () => {
      paused = !paused;
      pause.textContent = paused ? "Resume" : "Pause";
      if (!paused && missed) reload();
      if (!paused) kept.splice(0).slice(-Number(rows.dataset.rows)).forEach(insert);
    });
  }
  // Calls: the newest page is fetched again when something happens, at most once at a time.

  const table = one("#calls[data-newest]");
  let fetching = false;
  let missed = false;
  const reload = () => {
    if (!table) return;
    if (fetching || paused || document.hidden) { missed = true; return; }
    fetching = true;
    missed = false;
    const known = new Set(all("[data-call]", table).map((row) => row.dataset.call));
    fetch(location.href, { credentials: "same-origin" })
      .then((answer) => (answer.ok ? answer.text() : Promise.reject(answer.status)))
      .then((text) => {
        const fresh = one("#calls", new DOMParser().parseFromString(text, "text/html"));
        if (!fresh || paused) return;
        const at = document.activeElement.closest("[data-call]")?.dataset.call;
        table.replaceChildren(...fresh.childNodes);
        all("[data-call]", table).forEach((row) => {
          if (!known.has(row.dataset.call)) row.classList.add("fresh");
          if (row.dataset.call === at) one("a", row).focus();
        });
      })
      .catch((error) => { if (error === 401) location.reload(); })
      .finally(() => {
        // A pause, however busy the gates are; a call still appears within half a second.
        setTimeout(() => { fetching = false; if (missed) reload(); }, 100);
      });
  };
  addEventListener("visibilitychange", () => { if (missed) reload(); });
  const state = (on) => {
    const dot = one("[data-dot]");
    if (!dot) return;
    dot.classList.toggle("on", on);
    one("[data-state]").textContent = on ? "live" : "connecting";
  };
  if (document.body.dataset.live) {
    const stream = new EventSource(document.body.dataset.live);
    stream.addEventListener("open", () => state(true));
    stream.addEventListener("error", () => state(false));
    stream.addEventListener("inbox", refresh);
    stream.addEventListener("figures", () => { reloadParts(); });
    stream.addEventListener("calls", reload);
    stream.addEventListener("row", (event) => {
      if (!rows) return;
      if (paused) kept.push(event.data); else insert(event.data);
      if (kept.length > 1000) kept.splice(0, 500);
    });
    addEventListener("pagehide", () => stream.close());
    addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
  }

  // Figures: the parts that changed are replaced one by one. A part that the reader uses stays.

  let loading = false;
  const reloadParts = () => {
    if (loading || document.hidden || !one("[data-parts]")) return;
    loading = true;
    fetch(location.href, { credentials: "same-origin" })
      .then((answer) => (answer.ok ? answer.text() : Promise.reject(answer.status)))
      .then((text) => {
        const fresh = one("[data-parts]", new DOMParser().parseFromString(text, "text/html"));
        const parts = one("[data-parts]");
        const names = (root) => all("[data-part]", root).map((part) => part.dataset.part).join();
        if (!fresh || parts.contains(document.activeElement)) return;
        if (names(fresh) !== names(parts)) { parts.replaceChildren(...fresh.childNodes); return; }
        all("[data-part]", parts).forEach((part) => {
          const now = one(`[data-part="${part.dataset.part}"]`, fresh);
          const used = one("a:hover, button:hover", part);
          if (!used && now.innerHTML !== part.innerHTML) part.replaceChildren(...now.childNodes);
        });
        tick();
      })
      .catch((error) => { if (error === 401) location.reload(); })
      .finally(() => { loading = false; });
  };

  // Statistics: the part of the page that shows them is loaded again now and then.

  const figures = one("[data-refresh]");
  if (figures) {
    setInterval(() => {
      if (document.hidden || figures.contains(document.activeElement)) return;
      fetch(location.href, { credentials: "same-origin" })
        .then((answer) => (answer.ok ? answer.text() : Promise.reject(answer.status)))
        .then((text) => {
          const fresh = one("[data-refresh]", new DOMParser().parseFromString(text, "text/html"));
          if (fresh) figures.replaceChildren(...fresh.childNodes);
        })
        .catch((error) => { if (error === 401) location.reload(); });
    }, 1000 * Number(figures.dataset.refresh));
  }

  // Keys. They move the focus and never decide: that takes Enter on a button one has seen.

  const step = (by) => {
    const links = all(".requests > li:not(.settled) > a, #calls a.row");
    if (!links.length) return;
    const at = links.indexOf(document.activeElement);
    const open = links.findIndex((link) => link.hasAttribute("aria-current"));
    const next = at < 0 ? Math.max(0, open) : Math.min(links.length - 1, Math.max(0, at + by));
    links[next].focus();
    links[next].scrollIntoView({ block: "nearest" });
  };
  const inside = (selector) => {
    const control = one(`.ask:not(.settled) ${selector}`);
    if (control) control.focus();
    return control;
  };
  addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea");
    if (event.key === "Escape" && typing) { (typing.closest(".ask") || main).focus(); return; }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = {
      j: () => step(1),
      k: () => step(-1),
      A: () => inside("button.approve"),
      d: () => inside("input[name=reason]"),
    };
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
})();
