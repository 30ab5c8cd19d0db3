"use strict";
// SPDX-License-Identifier: Apache-2.0
(() => {
  const kept = 300; // seconds that charts show
  const $ = (id) => document.getElementById(id);

  /** An element with attributes and children; text never becomes markup. */
  function make(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) {
      made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }
  const number = (value) => (value >= 100 ? Math.round(value).toLocaleString("en") : value >= 10 ? value.toFixed(1) : value.toFixed(2));
  const percent = (part, whole) => (whole > 0 ? `${((part / whole) * 100).toFixed(1)} %` : "0 %");

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
      const labels = {};
      for (const [, name, value] of (found[2] || "").matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/g)) {
        labels[name] = value.replace(/\\(.)/g, "$1");
      }
      if (!all.has(found[1])) {
        all.set(found[1], []);
      }
      all.get(found[1]).push([labels, Number(found[3])]);
    }
    return all;
  }

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
  const one = (metrics, name) => (metrics.get(name) || [[{}, 0]])[0][1];

  let last = null; // {at, metrics}
  const history = []; // a sample for each second

  /** By how much each of `now` is above what it was, for each second. */
  function rates(now, before, seconds) {
    const made = Object.create(null); // names are anybody's, "constructor" too
    for (const [key, value] of now) {
      made[key] = Math.max(0, value - (before.get(key) || 0)) / seconds;
    }
    return made;
  }

  const statusOf = (labels) => (labels.status === "429" ? "429" : `${labels.status[0]}xx`);

  /** The time that a share of the requests of the last second were answered within, in ms. */
  function quantile(now, before, share) {
    const bounds = [...now.keys()].sort((a, b) => a - b);
    let whole = 0;
    const counts = bounds.map((bound) => {
      whole = Math.max(whole, now.get(bound) - (before.get(bound) || 0));
      return whole;
    });
    if (whole === 0) {
      return null;
    }
    const at = counts.findIndex((count) => count >= share * whole);
    const low = at === 0 ? 0 : bounds[at - 1];
    const high = bounds[at] === Infinity ? low : bounds[at];
    const below = at === 0 ? 0 : counts[at - 1];
    return (low + ((high - low) * (share * whole - below)) / Math.max(counts[at] - below, 1)) * 1000;
  }

  function sample(text, at) {
    const metrics = parseMetrics(text);
    if (last !== null) {
      const seconds = Math.max((at - last.at) / 1000, 0.001);
      const of = (name, keyOf) => rates(sums(metrics, name, keyOf), sums(last.metrics, name, keyOf), seconds);
      const bound = (labels) => (labels.le === "+Inf" ? Infinity : Number(labels.le));
      const latency = [sums(metrics, "tidegate_request_duration_seconds_bucket", bound), sums(last.metrics, "tidegate_request_duration_seconds_bucket", bound)];
      history.push({
        at: new Date(at),
        requests: of("tidegate_requests_total", statusOf),
        routes: of("tidegate_requests_total", (labels) => labels.route),
        latency: { p50: quantile(...latency, 0.5), p90: quantile(...latency, 0.9), p99: quantile(...latency, 0.99) },
        refusals: of("tidegate_decisions_total", (labels) => (labels.decision === "refused" || labels.decision === "blocked" ? labels.policy : null)),
        shadow: of("tidegate_decisions_total", (labels) => (labels.decision === "shadow-refused" ? labels.policy : null)),
        keys: of("tidegate_idempotency_total", (labels) => labels.outcome),
        cpu: (one(metrics, "process_cpu_seconds_total") - one(last.metrics, "process_cpu_seconds_total")) / seconds,
      });
      if (history.length > kept) {
        history.shift();
      }
    }
    last = { at, metrics };
  }

  // ---- charts ----

  const colours = { "2xx": "#2a8f4a", "3xx": "#4a86c5", "4xx": "#b8860b", "429": "#d2691e", "5xx": "#c0392b", p50: "#4a86c5", p90: "#b8860b", p99: "#c0392b" };
  const palette = ["#4a86c5", "#d2691e", "#2a8f4a", "#8e5bb5", "#b8860b", "#c0392b", "#16a0a0", "#7f8c3b"];
  const charts = new Map();
  // Legends are our own: those of the library need styles in markup, which the policy of the page forbids.
  Dygraph.PLUGINS = Dygraph.PLUGINS.filter((plugin) => plugin !== Dygraph.Plugins.Legend);

  /** Draws what history has of a member: everything, or only what has that name. */
  function draw(id, member, only) {
    const names = only !== undefined ? [only] : [...new Set(history.flatMap((each) => Object.keys(each[member])))].sort().slice(0, palette.length);
    if (names.length === 0) {
      names.push("none");
    }
    const rows = history.map((each) => [each.at, ...names.map((name) => (Object.hasOwn(each[member], name) ? each[member][name] : 0))]);
    if (rows.length === 0) {
      return;
    }
    const options = { file: rows, labels: ["time", ...names.map((name, i) => `series ${i}`)], colors: names.map((name, i) => (Object.hasOwn(colours, name) ? colours[name] : palette[i])) };
    if (!charts.has(id)) {
      charts.set(id, new Dygraph($(id), rows, {
        ...options, strokeWidth: 1.5, includeZero: true, axisLineColor: "#8a97a3", gridLineColor: "rgba(128,128,128,0.25)",
        labelsSeparateLines: false, connectSeparatedPoints: false, animatedZooms: false, digitsAfterDecimal: 1,
      }));
    } else {
      charts.get(id).updateOptions(options);
    }
    $(`${id}-legend`).replaceChildren(...names.map((name, i) => {
      const item = make("li", {}, make("span", { class: "swatch" }), `${name} ${rows.at(-1)[i + 1] === null ? "–" : number(rows.at(-1)[i + 1])}`);
      item.firstChild.style.backgroundColor = options.colors[i];
      return item;
    }));
  }

  // ---- views ----

  function table(into, heads, rows, empty) {
    const cell = (name, value, isNumber) => make(name, isNumber ? { class: "number" } : name === "th" ? { scope: "col" } : {}, value);
    const body = rows.map((row) => make("tr", {}, ...row.map((value, i) => cell("td", value, heads[i][1]))));
    if (rows.length === 0) {
      body.push(make("tr", {}, make("td", { colspan: String(heads.length), class: "is-empty" }, empty)));
    }
    // Whoever stands on a button of a row still does when the row was drawn anew.
    const focused = into.contains(document.activeElement) ? document.activeElement.dataset.id : undefined;
    into.replaceChildren(make("thead", {}, make("tr", {}, ...heads.map(([name, isNumber]) => cell("th", name, isNumber)))), make("tbody", {}, ...body));
    if (focused !== undefined) {
      [...into.querySelectorAll("[data-id]")].find((each) => each.dataset.id === focused)?.focus();
    }
  }

  function showOverview() {
    const now = history.at(-1);
    if (!now || !last) {
      return;
    }
    const total = (rate) => Object.values(rate).reduce((sum, each) => sum + each, 0);
    const tiles = [
      ["Requests/s", number(total(now.requests))],
      ["99 % within", now.latency.p99 === null ? "–" : `${number(now.latency.p99)} ms`],
      ["Refusals/s", number(total(now.refusals))],
      ["Replays/s", number(now.keys.replayed || 0)],
      ["Errors/s (5xx)", number(now.requests["5xx"] || 0)],
      ["Connections", String(one(last.metrics, "tidegate_connections_open"))],
      ["CPU", `${(now.cpu * 100).toFixed(0)} %`],
      ["Memory", `${(one(last.metrics, "process_resident_memory_bytes") / 1048576).toFixed(0)} MiB`],
    ];
    $("tiles").replaceChildren(...tiles.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
    draw("chart-requests", "requests");
    draw("chart-latency", "latency");
    draw("chart-refusals", "refusals");
    draw("chart-keys", "keys");
    const all = new Map();
    for (const [labels, value] of last.metrics.get("tidegate_requests_total") || []) {
      const row = all.get(labels.route) || { all: 0, refused: 0, failed: 0 };
      row.all += value;
      row.refused += labels.status === "429" ? value : 0;
      row.failed += labels.status[0] === "5" ? value : 0;
      all.set(labels.route, row);
    }
    table($("routes"), [["Route"], ["Requests/s", true], ["Requests", true], ["429", true], ["5xx", true]],
      [...all].map(([name, row]) => [name, number(now.routes[name] || 0), row.all.toLocaleString("en"), percent(row.refused, row.all), percent(row.failed, row.all)]),
      "No request has been answered yet.");
  }

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
  const button = (label, attributes, act) => {
    const made = make("button", { type: "button", ...attributes }, label);
    made.addEventListener("click", act);
    return made;
  };
  /** Does something with the form when it is sent. */
  const onSubmit = (form, into, work) => form.addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(into, () => work(new FormData(form)));
  });

  const overviewParts = [];
  const views = {
    overview: () => {
      showOverview();
      for (const part of overviewParts) {
        part();
      }
    },
  };
  const caller = JSON.parse($("who").textContent);
  // Views in files of their own come before this one and wait here for what they need.
  const kit = {
    $, make, button, number, percent, sums, one, table, ask, failed, attempt, onSubmit, draw, caller,
    /** Sends a value as JSON. */
    post: (path, value) => ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) }),
    /** What was last heard: {at, metrics}, or null. */
    last: () => last,
    /** The chart goes with its element. */
    forgetChart: (id) => {
      charts.get(id)?.destroy();
      charts.delete(id);
    },
    isShown: (name) => current() === name && !document.hidden,
    /** Has something shown in the overview, too. */
    addToOverview: (part) => overviewParts.push(part),
  };
  for (const add of globalThis.consoleViews || []) {
    Object.assign(views, add(kit));
  }
  const current = () => (Object.hasOwn(views, location.hash.slice(1)) ? location.hash.slice(1) : "overview");

  function turnTo() {
    for (const name of Object.keys(views)) {
      $(`view-${name}`).hidden = name !== current();
    }
    for (const link of document.querySelectorAll("nav a")) {
      if (link.hash === `#${current()}`) {
        link.setAttribute("aria-current", "page");
      } else {
        link.removeAttribute("aria-current");
      }
    }
    document.title = `Tidegate: ${document.querySelector(`#view-${current()} h2`).textContent}`;
    views[current()]();
    for (const chart of charts.values()) {
      chart.resize();
    }
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

  // ---- live ----

  function tell(text, kind) {
    $("live").textContent = text;
    $("live").className = kind;
  }

  const first = JSON.parse($("first").textContent);
  sample(first.metrics, first.at);
  history.push({ at: new Date(first.at), requests: {}, routes: {}, latency: { p50: null, p90: null, p99: null }, refusals: {}, shadow: {}, keys: {}, cpu: 0 });
  const events = new EventSource("/api/v1/events");
  events.addEventListener("metrics", (event) => {
    const { at, metrics } = JSON.parse(event.data);
    sample(metrics, at);
    tell("live", "is-live");
    if (document.hidden) {
      return;
    }
    if (current() !== "configuration") {
      views[current()]();
    }
  });
  events.addEventListener("error", () => {
    tell("not connected", "is-lost");
    if (caller.session) {
      ask("/api/v1/session").catch(() => {}); // perhaps it has ended
    }
  });

  // ---- who looks ----

  if (caller.token !== null) {
    $("caller").textContent = caller.token + (caller["read-only"] ? " (read-only)" : "");
    $("caller").hidden = false;
    $("logout").hidden = !caller.session;
  }
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
