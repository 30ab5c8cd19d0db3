"use strict";
// SPDX-License-Identifier: Apache-2.0
// Idempotency keys: what became of them, and what is to become of those whose outcome is unknown.
(globalThis.consoleViews ??= []).push(({ $, make, button, table, lesson, confirmThat, ask, post, failed, onSubmit, whole, plural, moment, ago, allOf, last, isShown, caller }) => {
  const listed = 200;
  const reasons = { "no-answer": "the connection ended without an answer", "cut-answer": "the answer was cut", "timed-out": "no answer in time", "upstream-failed": "502, 503 or 504 from the upstream",
    "gateway-stopped": "the gateway stopped meanwhile" };
  const reasonOf = ({ reason }) => (Object.hasOwn(reasons, reason) ? reasons[reason] : reason ?? "");

  function showOutcomes() {
    const all = new Map();
    for (const [{ route, outcome }, value] of allOf("tidegate_idempotency_total")) {
      all.set(route, new Map([...(all.get(route) || []), [outcome, value]]));
    }
    const names = ["first", "replayed", "conflict", "reused", "unknown"];
    table($("outcomes"), [["Route"], ...names.map((name) => [name, true]), ["others", true]],
      [...all].map(([route, counts]) => [route, ...names.map((name) => whole(counts.get(name) || 0)),
        whole([...counts].reduce((sum, [name, count]) => sum + (names.includes(name) ? 0 : count), 0))]),
      "No request with a key yet.");
  }

  // ---- what can be done about a record ----

  const commands = [
    { label: "It was carried out", onlyUnknown: true, text: "Retries get 409 and learn that it was carried out. It does not run again.", change: (path) => post(`${path}/resolve`, { outcome: "executed" }) },
    { label: "It was not carried out", onlyUnknown: true, isDangerous: true, text: "The next retry with this key runs. If it was carried out after all, it happens twice: a payment is paid twice.",
      change: (path) => post(`${path}/resolve`, { outcome: "not-executed" }) },
    { label: "Forget it", isDangerous: true, text: "The key is deleted, and a retry with it runs as if it were new. If the request was carried out, it happens twice.", change: (path) => ask(path, { method: "DELETE" }) },
  ];
  const nameOf = (record) => (record.path ? `${record.method} ${record.path}` : `${record.id.slice(0, 16)}…`);
  /** A name, or the beginning of a digest. */
  const clientOf = ({ principal, scope }) => (principal === undefined ? `scope ${scope.slice(0, 8)}…` : /^[0-9a-f]{32}$/.test(principal) ? `client ${principal.slice(0, 8)}…` : principal);

  /** Asks, and does it to each; `done` is told what was done. */
  async function run(command, records, done, wrong) {
    const what = records.length === 1 ? `${nameOf(records[0])} of ${clientOf(records[0])}` : plural(records.length, "request", "requests");
    if (!await confirmThat({ title: `${command.label}: ${what}`, text: command.text, label: command.label, isDangerous: command.isDangerous })) {
      return;
    }
    let count = 0;
    try {
      for (const record of records) {
        await command.change(`/api/v1/idempotency/${encodeURIComponent(record.id)}`);
        ++count;
      }
      done(`${command.label}: done${records.length === 1 ? "" : ` for ${count}`}.`);
    } catch (error) {
      wrong(count === 0 ? error : new Error(`${error.message} (done for ${count} of ${records.length})`));
    }
  }
  const buttons = (records, id, done, wrong) => commands.filter(({ onlyUnknown }) => !onlyUnknown || records().every(({ state }) => state === "unknown")).map((command) => {
    const made = button(command.label, { class: command.isDangerous ? "danger" : "", "data-id": `${command.label} ${id}` }, () => run(command, records(), done, wrong));
    made.disabled = caller["read-only"];
    return made;
  });

  const titles = { id: "Digest of the key", scope: "Digest of the scope", route: "Route", method: "Method", host: "Host", path: "Path", principal: "Client", state: "State", reason: "Why", attempt: "Attempts",
    status: "Status", replayable: "Can be replayed", created: "First seen", changed: "Changed", "lease-until": "Lease until", "replayed-until": "Replayed until", "remembered-until": "Remembered until" };
  const times = ["created", "changed", "lease-until", "replayed-until", "remembered-until"];
  const facts = (record) => make("dl", { class: "record-facts" }, ...Object.entries(record).map(([name, value]) => make("div", {},
    make("dt", {}, Object.hasOwn(titles, name) ? titles[name] : name), make("dd", {}, times.includes(name) ? moment(value) : name === "reason" ? reasonOf(record) : typeof value === "boolean" ? (value ? "yes" : "no") : String(value)))));

  function showRecord(record) {
    const into = $("key-answer");
    into.replaceChildren(make("div", { class: "card" }, facts(record), make("p", { class: "buttons" }, ...buttons(() => [record], "found", (text) => {
      into.replaceChildren(make("p", { class: "good" }, text));
      refresh();
    }, (error) => failed(into, error)))));
  }

  // ---- those in doubt ----

  let unknown = []; // as the gateway lists them
  let isMore = false;
  const rows = new Map(); // {item, pick, age, changed} by id

  const said = (text, kind) => $("unknown-answer").replaceChildren(make("p", { class: kind }, text));
  const settled = (text) => {
    said(text, "good");
    refresh();
  };
  const notSettled = (error) => {
    said(String(error.message || error), "error");
    refresh();
  };

  function rowOf(record) {
    const age = make("span", { class: "age" });
    const pick = make("input", { type: "checkbox", "aria-label": `Select ${nameOf(record)} of ${clientOf(record)}` });
    pick.addEventListener("change", showSelection);
    const summary = make("summary", {}, make("span", { class: "what" }, nameOf(record)), make("span", { class: "who" }, clientOf(record)),
      make("span", { class: "route" }, record.route ?? ""), make("span", { class: "why" }, reasonOf(record)), age);
    const body = make("div", { class: "opened" }, facts(record), make("div", { class: "choices" }, ...buttons(() => [record], record.id, settled, notSettled)
      .map((each, i) => make("p", {}, each, make("span", { class: "note" }, commands[i].text)))));
    return { record, item: make("li", { class: "record" }, make("label", { class: "pick" }, pick), make("details", {}, summary, body)), pick, age };
  }
  const shown = () => {
    const words = $("unknown-form").text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const route = $("unknown-form").route.value;
    return unknown.filter((each) => (route === "" || each.route === route) &&
      words.every((word) => [nameOf(each), each.principal ?? "", each.id, each.host ?? ""].join(" ").toLowerCase().includes(word)));
  };
  const picked = () => [...rows.values()].filter(({ pick, item }) => pick.checked && item.isConnected).map(({ record }) => record);

  function showSelection() {
    const count = picked().length;
    const into = $("unknown-selection");
    into.hidden = count === 0;
    if (count > 0 && into.childElementCount === 0) {
      into.append(make("strong", {}), ...buttons(picked, "selection", settled, notSettled), button("Select none", { class: "plain" }, () => {
        rows.forEach(({ pick }) => { pick.checked = false; });
        showSelection();
      }));
    }
    if (count > 0) {
      into.firstChild.textContent = `${count} selected`;
    }
  }

  function showUnknown() {
    const routes = [...new Set(unknown.map(({ route }) => route).filter(Boolean))].sort();
    const select = $("unknown-form").route;
    if (JSON.stringify([...select.options].slice(1).map(({ value }) => value)) !== JSON.stringify(routes)) {
      const before = select.value;
      select.replaceChildren(make("option", { value: "" }, "all"), ...routes.map((route) => make("option", { value: route }, route)));
      select.value = routes.includes(before) ? before : "";
    }
    const found = shown();
    $("unknown-form").hidden = unknown.length === 0;
    $("unknown-note").textContent = unknown.length === 0 ? "No request is in doubt: of each it is known whether it was carried out."
      : `${found.length} of ${isMore ? `the newest ${unknown.length}` : unknown.length}. It is not known whether these were carried out: find out, then open one and say so. Neither bodies nor secrets are shown.`;
    for (const id of [...rows.keys()].filter((each) => !unknown.some((record) => record.id === each))) {
      rows.delete(id);
    }
    const wanted = found.map((record) => {
      if (!rows.has(record.id) || rows.get(record.id).record.changed !== record.changed) {
        rows.set(record.id, rowOf(record));
      }
      const row = rows.get(record.id);
      row.age.textContent = ago(Date.parse(record.changed), last().at);
      row.age.title = moment(record.changed);
      return row.item;
    });
    const list = $("unknown");
    if (wanted.length !== list.children.length || wanted.some((item, i) => list.children[i] !== item)) {
      list.replaceChildren(...wanted); // else what has the focus would lose it
    }
    showSelection();
  }
  $("unknown-form").addEventListener("input", showUnknown);
  $("unknown-form").addEventListener("submit", (event) => event.preventDefault());

  const hasKeys = () => allOf("tidegate_store_up").some(([labels]) => labels.store === "idempotency");

  async function refresh() {
    $("keys-body").hidden = !hasKeys();
    $("keys-lesson").hidden = hasKeys();
    if (!hasKeys()) {
      lesson($("keys-lesson"), "No route takes an Idempotency-Key yet", "With this, a POST that is retried is carried out once, and the retry gets the same answer. In the configuration:",
        "routes:\n  - match: {path: /payments, methods: [POST]}\n    upstream: api\n    idempotency: {mode: required}");
      return;
    }
    try {
      const told = await ask(`/api/v1/idempotency/unknown?limit=${listed}`);
      unknown = told.unknown;
      isMore = told.more;
      showUnknown();
    } catch (error) {
      if (isShown("idempotency")) {
        $("unknown-note").textContent = String(error.message || error);
      }
    }
  }

  onSubmit($("key-form"), $("key-answer"), async (asked) => {
    // Not in the URL, which others may keep.
    const scope = asked.get("scope").split("\n").map((line) => line.replace(/\r$/, ""));
    showRecord(await post("/api/v1/idempotency/lookup", { scope, key: asked.get("key") }));
  });

  let turns = 0;
  return { idempotency: async () => {
    showOutcomes();
    if (turns++ % 3 === 0) {
      await refresh();
    }
  } };
});
