"use strict";
// SPDX-License-Identifier: Apache-2.0
// Idempotency keys: what became of them, and what is to become of those that nobody knows.
(globalThis.consoleViews ??= []).push(({ $, make, button, table, ask, post, failed, onSubmit, last, isShown }) => {

  function showOutcomes() {
    const heard = last();
    if (!heard) {
      return;
    }
    const all = new Map();
    for (const [labels, value] of heard.metrics.get("tidegate_idempotency_total") || []) {
      all.set(labels.route, { ...all.get(labels.route), [labels.outcome]: value });
    }
    const names = ["first", "replayed", "conflict", "reused", "unknown"];
    table($("outcomes"), [["Route"], ...names.map((name) => [name, true]), ["others", true]],
      [...all].map(([route, counts]) => [route, ...names.map((name) => (counts[name] || 0).toLocaleString("en")),
        Object.entries(counts).reduce((sum, [name, count]) => sum + (names.includes(name) ? 0 : count), 0).toLocaleString("en")]),
      "No request with a key yet.");
  }

  /** What can be done about a record. `done` is told what was. */
  function actions(record, done, wrong) {
    const path = `/api/v1/idempotency/${encodeURIComponent(record.id)}`;
    const act = (label, question, change) => button(label, { class: "plain", "data-id": `${label} ${record.id}` }, async () => {
      if (!window.confirm(question)) {
        return;
      }
      try {
        await change();
        done(label);
      } catch (error) {
        wrong(error);
      }
    });
    const resolve = (outcome) => () => post(`${path}/resolve`, { outcome });
    return [
      ...(record.state === "unknown" ? [act("It was carried out", "Retries will be told that it was carried out.", resolve("executed")),
        act("It was not carried out", "The next retry will run.", resolve("not-executed"))] : []),
      act("Forget it", "A retry with this key will run again.", () => ask(path, { method: "DELETE" })),
    ];
  }

  function showRecord(record) {
    const into = $("key-answer");
    const rows = Object.entries(record).map(([name, value]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, String(value))));
    into.replaceChildren(make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The record" }, make("table", {}, make("tbody", {}, ...rows))),
      make("p", { class: "actions" }, ...actions(record, (label) => {
        into.replaceChildren(make("p", {}, `${label}: done.`));
        refresh();
      }, (error) => failed(into, error))));
  }

  // ---- unknown outcomes ----

  const when = (text) => new Date(text).toLocaleString("en-GB");

  const hasKeys = () => (last()?.metrics.get("tidegate_store_up") || []).some(([labels]) => labels.store === "idempotency");

  async function refresh() {
    if (!hasKeys()) {
      $("unknown-note").textContent = "No route has idempotency keys.";
      return;
    }
    try {
      const { unknown, more } = await ask("/api/v1/idempotency/unknown?limit=50");
      $("unknown-note").textContent = more ? "The newest 50; there are more." : "The newest first. Neither bodies nor secrets are shown.";
      table($("unknown"), [["Key"], ["Route"], ["Request"], ["Client"], ["Why"], ["Attempts", true], ["First seen"], ["Unknown since"], ["Do"]],
        unknown.map((each) => [`${each.id.slice(0, 16)}…`, each.route ?? "", each.path ? `${each.method} ${each.path}` : "", each.principal ?? `scope ${each.scope.slice(0, 8)}…`,
          each.reason, String(each.attempt), when(each.created), when(each.changed),
          make("span", { class: "actions" }, ...actions(each, (label) => {
            $("unknown-answer").replaceChildren(make("p", { class: "good" }, `${each.id.slice(0, 16)}… – ${label}: done.`));
            refresh();
          }, (error) => failed($("unknown-answer"), error)))]),
        "There is none.");
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
  return { idempotency: () => {
    showOutcomes();
    if (turns++ % 3 === 0) {
      refresh();
    }
  } };
});
