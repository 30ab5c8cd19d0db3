"use strict";
// SPDX-License-Identifier: Apache-2.0
// The overview: what passes, how long it takes, what is refused, and how servers and stores are.
(globalThis.consoleViews ??= []).push(({ $, make, button, table, lesson, ask, attempt, number, whole, percent, span, clock, one, allOf, rates, history, shownHistory, range, setRange, about }) => {
  const { Chart, spark } = globalThis.consoleCharts;
  const ranges = [[300, "5 min"], [900, "15 min"], [3600, "1 h"]];
  const seriesMax = 8; // policies with a colour of their own
  const charts = Object.fromEntries(["requests", "latency", "refusals", "keys"].map((name) => [name, new Chart($(`chart-${name}`))]));

  for (const [seconds, name] of ranges) {
    $("ranges").append(button(name, { "data-seconds": String(seconds) }, () => attempt($("facts"), () => setRange(seconds))));
  }

  // ---- charts ----

  const perSecond = (samples, valueOf) => samples.map((each) => (valueOf(each) || 0) / each.seconds);

  function showCharts() {
    for (const each of $("ranges").children) {
      each.setAttribute("aria-pressed", String(Number(each.dataset.seconds) === range()));
    }
    const { samples, at, from, to } = shownHistory();
    const lately = `in the last ${span(range())}`;
    const show = (name, series, more) => charts[name].show({ at, from, to, series, isStack: true, unit: "/s", ...more });
    show("requests", ["2xx", "3xx", "1xx", "4xx", "429", "5xx"].map((name) => ({ name, kind: `c-${name}`, values: perSecond(samples, ({ responses }) => responses[name]) })), { empty: `No request ${lately}.` });
    show("latency", [["p50", "50 % within"], ["p90", "90 % within"], ["p99", "99 % within"]].map(([key, name]) => (
      { name, kind: `c-${key}`, values: samples.map(({ latency }) => (latency[key] === null || latency[key] === undefined ? null : latency[key] / 1000)) })), { isStack: false, unit: " ms", empty: `No request ${lately}.` });
    const names = [...new Set(samples.flatMap(({ policies }) => [...policies.keys()]))].map((name) => [name, history.sumOf(samples, name).refused])
      .filter(([, refused]) => refused > 0).sort((a, b) => b[1] - a[1]).slice(0, seriesMax).map(([name]) => name).sort();
    show("refusals", names.map((name, i) => ({ name, kind: `c-${i}`, values: perSecond(samples, ({ policies }) => policies.get(name)?.refused) })), { empty: `Nothing was refused ${lately}.` });
    show("keys", ["first", "replayed", "conflict", "reused", "unknown", "others"].map((name) => ({ name, kind: `c-${name}`, values: perSecond(samples, ({ keys }) => keys[name]) })),
      { empty: allOf("tidegate_idempotency_total").length === 0 ? "No route takes an Idempotency-Key. Idempotency says how to begin." : `No request with a key ${lately}.` });
  }

  // ---- figures ----

  function showTiles() {
    const { samples } = shownHistory();
    const newest = samples.at(-1);
    const live = rates("tidegate_requests_total", ({ status }) => (status === "429" ? "429" : `${status[0]}xx`));
    const now = live ?? new Map(newest ? Object.entries(newest.responses).map(([name, count]) => [name, count / newest.seconds]) : []);
    const all = [...now.values()].reduce((sum, each) => sum + each, 0);
    const of = (name) => now.get(name) || 0;
    const total = ({ responses }) => Object.values(responses).reduce((sum, each) => sum + each, 0);
    const latency = [...samples].reverse().find((each) => each.latency.p99 !== null && each.latency.p99 !== undefined)?.latency;
    const milliseconds = (value) => `${number(value / 1000)} ms`;
    const tile = (name, value, text, values, kind, isBad) => make("div", isBad ? { class: "is-bad" } : {}, make("dt", {}, name), make("dd", {}, make("span", { class: "value" }, value), make("span", { class: "sub" }, text), spark(values, kind)));
    $("tiles").replaceChildren(
      tile("Requests", `${number(all)}/s`, `${whole(samples.reduce((sum, each) => sum + total(each), 0))} in ${span(range())}`, perSecond(samples, total), "c-2xx"),
      tile("99 % within", latency ? milliseconds(latency.p99) : "–", latency ? `half within ${milliseconds(latency.p50)}` : "no request yet", samples.map((each) => each.latency.p99 ?? null), "c-p99"),
      tile("Refused (429)", `${number(of("429"))}/s`, `${percent(of("429"), all)} of requests`, perSecond(samples, ({ responses }) => responses["429"]), "c-429"),
      tile("Errors (5xx)", `${number(of("5xx"))}/s`, `${percent(of("5xx"), all)} of requests`, perSecond(samples, ({ responses }) => responses["5xx"]), "c-5xx", of("5xx") > 0));
    const cpu = rates("process_cpu_seconds_total", () => "cpu");
    const keys = rates("tidegate_idempotency_total", ({ outcome }) => outcome);
    const facts = [
      ["Replays", `${number(keys?.get("replayed") ?? (newest ? (newest.keys.replayed || 0) / newest.seconds : 0))}/s`],
      ["In doubt", whole(one("tidegate_idempotency_unresolved"))],
      ["Connections", whole(one("tidegate_connections_open"))],
      ["CPU", cpu === null ? "–" : `${(cpu.get("cpu") * 100).toFixed(0)} %`],
      ["Memory", `${(one("process_resident_memory_bytes") / 1048576).toFixed(0)} MiB`],
    ];
    $("facts").replaceChildren(...facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
  }

  // ---- upstreams, stores, routes ----

  const state = (word, kind) => make("span", { class: `state ${kind}` }, word);

  function servers() {
    const made = new Map();
    for (const [name, member] of [["up", "up"], ["in_flight", "inFlight"], ["failures_total", "failures"], ["down_since_timestamp_seconds", "downSince"]]) {
      for (const [labels, value] of allOf(`tidegate_upstream_${name}`)) {
        const key = JSON.stringify([labels.upstream, labels.server]);
        made.set(key, { upstream: labels.upstream, server: labels.server, ...made.get(key), [member]: value });
      }
    }
    return [...made.values()];
  }
  function wordFor({ up, downSince }) {
    if (downSince > 0) {
      return state(`down since ${clock(downSince * 1000)}`, "error");
    }
    return up === 1 ? state("up", "good") : state("unhealthy", "error");
  }
  function showHealth() {
    table($("upstreams"), [["Upstream"], ["Server"], ["State"], ["In flight", true], ["Failures", true]],
      servers().map((each) => [each.upstream, each.server, wordFor(each), whole(each.inFlight), whole(each.failures)]), "No route has an upstream.");
    table($("stores"), [["Store"], ["Kind"], ["State"]],
      allOf("tidegate_store_failing_since_timestamp_seconds").map(([{ store, kind }, since]) => [store, kind, since === 0 ? state("ok", "good") : state(`failing since ${clock(since * 1000)}`, "error")]),
      "No route needs a store.");
    const all = new Map();
    for (const [{ route, status }, value] of allOf("tidegate_requests_total")) {
      const row = all.get(route) || { all: 0, refused: 0, failed: 0 };
      row.all += value;
      row.refused += status === "429" ? value : 0;
      row.failed += status[0] === "5" ? value : 0;
      all.set(route, row);
    }
    const now = rates("tidegate_requests_total", ({ route }) => route);
    table($("routes"), [["Route"], ["Now", true], ["Requests", true], ["429", true], ["5xx", true]],
      [...all].map(([name, row]) => [name, now === null ? "–" : `${number(now.get(name) || 0)}/s`, whole(row.all), percent(row.refused, row.all), row.failed > 0 ? state(percent(row.failed, row.all), "error") : percent(0, 1)]),
      "No request has been answered yet.");
  }

  // ---- before the first request ----

  let isTaught = false;
  async function teach() {
    const isNew = allOf("tidegate_requests_total").length === 0;
    document.body.classList.toggle("is-new", isNew);
    if (!isNew) {
      $("first-request").hidden = true;
    } else if (!isTaught) {
      isTaught = true;
      const { options } = await ask("/api/v1/config").catch(() => ({ options: [] }));
      const path = options.find((each) => /^routes\[.*\]\.match\.path$/.test(each.path))?.value.replace(/^"|"$/g, "").replace(/\*+.*$|\{.*$/, "") || "/";
      const listener = (about.listeners.find((each) => each.startsWith("http")) ?? "http://127.0.0.1:8080").replace(/\/\/(0\.0\.0\.0|\[::\])/, `//${location.hostname}`);
      lesson($("first-request"), "No request yet", "Send one, and look what happens here:", `curl -i ${listener}${path.startsWith("/") ? path : "/"}`);
    }
  }

  return { overview: () => {
    teach();
    showTiles();
    showCharts();
    showHealth();
  } };
});
