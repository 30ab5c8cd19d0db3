"use strict";
// SPDX-License-Identifier: Apache-2.0
// What the views share: elements, tables, requests, the figures of each second, and which view is shown.
(() => {
  const format = globalThis.consoleFormat;
  const history = globalThis.consoleHistory;
  const $ = (id) => document.getElementById(id);

  // ---- elements ----

  /** An element with attributes and children; text never becomes markup. */
  function make(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }
  /** Puts other elements there. What has the focus still has it where the same `data-id` is there again. */
  function redraw(into, ...children) {
    const focused = into.contains(document.activeElement) ? document.activeElement.dataset.id : undefined;
    into.replaceChildren(...children);
    if (focused !== undefined) {
      [...into.querySelectorAll("[data-id]")].find((each) => each.dataset.id === focused)?.focus();
    }
  }
  /** On narrow screens rows become cards, in which each cell says what it is. */
  function table(into, heads, rows, empty) {
    const cell = (name, [head, isNumber], value) => make(name, { ...(isNumber ? { class: "number" } : {}), ...(name === "th" ? { scope: "col" } : { "data-label": head }) }, value);
    const body = rows.map((row) => make("tr", {}, ...row.map((value, i) => cell("td", heads[i], value))));
    if (rows.length === 0) {
      body.push(make("tr", {}, make("td", { colspan: String(heads.length), class: "is-empty" }, empty)));
    }
    redraw(into, make("thead", {}, make("tr", {}, ...heads.map((head) => cell("th", head, head[0])))), make("tbody", {}, ...body));
  }
  const button = (label, attributes, act) => {
    const made = make("button", { type: "button", ...attributes }, label);
    made.addEventListener("click", act);
    return made;
  };
  /** Says how to begin: words and something to copy. */
  const lesson = (into, title, text, code) => {
    if (into.childElementCount === 0) {
      into.append(make("h3", {}, title), make("p", {}, text), make("pre", { tabindex: "0" }, code));
    }
    into.hidden = false;
  };

  /** Asks before something is done; the answer is a promise of true or false. */
  function confirmThat({ title, text, label, isDangerous }) {
    const dialog = $("question");
    $("question-title").textContent = title;
    $("question-text").textContent = text;
    $("question-yes").textContent = label;
    $("question-yes").className = isDangerous ? "danger" : "";
    return new Promise((resolve) => {
      const end = (isSure) => {
        dialog.close();
        $("question-yes").onclick = $("question-no").onclick = dialog.oncancel = null;
        resolve(isSure);
      };
      $("question-yes").onclick = () => end(true);
      $("question-no").onclick = () => end(false);
      dialog.oncancel = () => end(false);
      dialog.showModal();
      $("question-no").focus();
    });
  }

  // ---- requests ----

  async function ask(path, options) {
    const response = await fetch(path, { cache: "no-store", ...options });
    if (response.status === 401) {
      location.reload(); // the session has ended, and the address shows how to begin another
    }
    const text = await response.text();
    const value = text ? JSON.parse(text) : null;
    if (!response.ok) {
      throw Object.assign(new Error((value && (value.detail || value.title)) || `status ${response.status}`), { answer: value });
    }
    return value;
  }
  const failed = (into, error) => into.replaceChildren(make("p", { class: "error" }, String(error.message || error)));
  /** Does something, and shows why where it fails. */
  const attempt = async (into, work) => {
    try {
      await work();
    } catch (error) {
      failed(into, error);
    }
  };
  /** Does something with the form when it is sent. */
  const onSubmit = (form, into, work) => form.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(into, () => work(new FormData(form)));
  });

  // ---- what the gateway counts ----

  /** The text format of Prometheus as a map from name to a list of [labels, value]. */
  function parseMetrics(text) {
    const all = new Map();
    const line = /^([a-z_]+)(?:\{(.*)\})? (\S+)$/;
    for (const each of text.split("\n")) {
      const found = each.startsWith("#") ? null : line.exec(each);
      if (!found) {
        continue;
      }
      const labels = Object.create(null);
      for (const [, name, value] of (found[2] || "").matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)) {
        labels[name] = value.replace(/\\(.)/g, (unused, c) => (c === "n" ? "\n" : c));
      }
      if (!all.has(found[1])) {
        all.set(found[1], []);
      }
      all.get(found[1]).push([labels, Number(found[3])]);
    }
    return all;
  }
  let last = null; // {at, metrics}
  let before = null; // the same of a second ago

  const one = (name) => last.metrics.get(name)?.[0][1] ?? 0;
  const allOf = (name) => last.metrics.get(name) || [];
  /** Sums of one metric by what `keyOf` makes of its labels. */
  function sums(metrics, name, keyOf) {
    const made = new Map();
    for (const [labels, value] of metrics.get(name) || []) {
      const key = keyOf(labels);
      if (key !== null) {
        made.set(key, (made.get(key) || 0) + value);
      }
    }
    return made;
  }
  /** The same for each second of the last one; null before there are two moments. */
  function rates(name, keyOf) {
    if (before === null) {
      return null;
    }
    const seconds = Math.max((last.at - before.at) / 1000, 0.001);
    const then = sums(before.metrics, name, keyOf);
    return new Map([...sums(last.metrics, name, keyOf)].map(([key, value]) => [key, Math.max(0, value - (then.get(key) || 0)) / seconds]));
  }

  // ---- views ----

  const caller = JSON.parse($("who").textContent);
  const about = JSON.parse($("what").textContent);
  const views = {};
  const always = []; // what is shown whatever the view is
  const rangeMax = 3600;
  let range = 900; // seconds that charts show
  let sought = null; // the part of a view that a link leads to

  // Views in files of their own come before this one and wait here for what they need.
  const kit = {
    ...format, $, make, button, redraw, table, lesson, confirmThat, ask, failed, attempt, onSubmit, one, allOf, rates, caller, about, history,
    /** Sends a value as JSON. */
    post: (path, value) => ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) }),
    /** What was last heard: {at, metrics}. */
    last: () => last,
    isShown: (name) => current() === name && !document.hidden,
    range: () => range,
    /** The samples that charts show, and from when to when. */
    shownHistory: () => {
      const samples = history.since(range);
      const to = samples.at(-1)?.at ?? last.at;
      return { samples, at: samples.map((each) => each.at), to, from: Math.max(to - range * 1000, Math.min(samples[0]?.at ?? to, to - 60000)) };
    },
    setRange: async (seconds) => {
      range = seconds;
      history.replace(await ask(`/api/v1/history?seconds=${seconds}`));
      show();
    },
    addAlways: (part) => always.push(part),
    /** Goes to the part of a view that a link named, once that is there. */
    reach: () => {
      const found = sought === null ? undefined : [...document.querySelectorAll(`#view-${current()} [data-part]`)].find((each) => each.dataset.part === sought);
      if (found && found.getClientRects().length > 0) {
        sought = null;
        found.scrollIntoView({ block: "start" });
        found.focus({ preventScroll: true });
      }
    },
  };
  for (const add of globalThis.consoleViews || []) {
    Object.assign(views, add(kit));
  }
  const place = () => location.hash.replace(/^#\/?/, "").split("/");
  const current = () => (Object.hasOwn(views, place()[0]) ? place()[0] : "overview");

  /** What stands below a question stays as it is. */
  async function show() {
    if (!$("question").open) {
      always.forEach((part) => part());
      await views[current()]();
      kit.reach();
    }
  }
  function turnTo() {
    try {
      sought = decodeURIComponent(place().slice(1).join("/")) || null;
    } catch (error) {
      sought = null; // not written by us
    }
    for (const name of Object.keys(views)) {
      $(`view-${name}`).hidden = name !== current();
    }
    for (const link of document.querySelectorAll("nav a")) {
      if (link.hash === `#/${current()}`) {
        link.setAttribute("aria-current", "page");
        link.scrollIntoView({ block: "nearest", inline: "center" });
      } else {
        link.removeAttribute("aria-current");
      }
    }
    document.title = `Tidegate: ${document.querySelector(`#view-${current()} h2`).textContent}`;
    show();
  }
  window.addEventListener("hashchange", turnTo);
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    $("main").focus();
  });

  // ---- light and dark ----

  const wish = window.matchMedia("(prefers-color-scheme: dark)");
  function paint(theme) {
    document.documentElement.dataset.theme = theme;
    $("theme").textContent = theme === "dark" ? "Light" : "Dark";
    $("theme").setAttribute("aria-pressed", String(theme === "dark"));
  }
  $("theme").addEventListener("click", () => paint(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  wish.addEventListener("change", () => paint(wish.matches ? "dark" : "light"));
  paint(wish.matches ? "dark" : "light");

  // ---- which gateway, and who looks ----

  function showAbout() {
    const facts = [["Version", about.version], ["Instance", about.instance], ["Up", format.span(Math.floor((last.at - Date.parse(about.started)) / 1000))], ["File", about.file ?? "command line"]];
    $("about").replaceChildren(...facts.filter(([, value]) => value).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", { title: value }, value))));
  }
  always.push(showAbout);
  if (caller.token !== null) {
    $("caller").textContent = caller.token + (caller["read-only"] ? " (read-only)" : "");
    $("caller").hidden = false;
    $("logout").hidden = !caller.session;
  }

  // ---- live ----

  function tell(text, kind) {
    $("live").textContent = text;
    $("live").className = kind;
  }
  function hear({ at, metrics }) {
    before = last;
    last = { at, metrics: parseMetrics(metrics) };
  }

  const first = JSON.parse($("first").textContent);
  hear(first);
  history.replace(first.history);
  const events = new EventSource("/api/v1/events");
  events.addEventListener("metrics", (event) => {
    const heard = JSON.parse(event.data);
    hear(heard);
    tell("live", "is-live");
    if (history.follow(heard.history)) {
      history.trim(rangeMax);
    } else {
      // Events were missed, or the gateway was started again. Where this fails, the next event tries again.
      Promise.all([ask(`/api/v1/history?seconds=${range}`), ask("/api/v1/about")]).then(([told, itself]) => {
        history.replace(told);
        Object.assign(about, itself);
      }, () => {});
    }
    if (document.hidden) {
      return;
    }
    if (current() === "configuration") { // is read when it is opened, and when one asks for it
      always.forEach((part) => part());
    } else {
      show();
    }
  });
  events.addEventListener("error", () => {
    tell("not connected", "is-lost");
    if (caller.session) {
      ask("/api/v1/session").catch(() => {}); // perhaps it has ended
    }
  });
  $("logout").addEventListener("click", async () => {
    events.close();
    try {
      await ask("/api/v1/session", { method: "DELETE" });
      location.reload();
    } catch (error) {
      tell(String(error.message || error), "is-lost");
    }
  });
  turnTo();
})();
