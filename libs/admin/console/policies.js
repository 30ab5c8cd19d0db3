"use strict";
// SPDX-License-Identifier: Apache-2.0
// Policies and their partitions: what they are, what is left, and what can be done about it.
(globalThis.consoleViews ??= []).push(({ $, make, button, percent, table, ask, post, failed, attempt, onSubmit, draw, forgetChart, isShown }) => {
  const chartsMax = 20; // policies with a chart of their own
  const units = { requests: "requests", "content-bytes": "octets of content", "concurrent-requests": "requests at a time" };

  /** What a policy allows, in words. */
  const headline = (policy) => {
    const who = policy.partition.sources.join(" and ");
    return `${policy.quota.toLocaleString("en")} ${units[policy.unit] || policy.unit}${policy.window ? ` in ${policy.window} s` : ""}, ` +
      (who ? `for each ${who}` : "for everyone together") + (policy.algorithm ? ` (${policy.algorithm})` : "");
  };
  /** The policy as a field of draft-09, without the partition key. */
  const fieldOf = (policy) => `RateLimit-Policy: "${policy.name.replace(/["\\]/g, "\\$&")}";q=${policy.quota}` +
    (policy.unit === "requests" ? "" : `;qu="${policy.unit}"`) + (policy.window ? `;w=${policy.window}` : "");
  const results = (policy) => {
    const decided = policy.admitted + policy.refused;
    return policy.enforced ? `Refused ${percent(policy.refused, decided)} of ${decided.toLocaleString("en")} requests.`
      : `Only watches, and would have refused ${percent(policy["shadow-refused"], policy.admitted + policy["shadow-refused"])} of ${(policy.admitted + policy["shadow-refused"]).toLocaleString("en")} requests.`;
  };

  // ---- the policies ----

  let cards = null; // {key, results, note}, in the order of the policies; null: none are drawn

  function card(policy, i) {
    const made = { key: JSON.stringify([policy.name, policy.quota, policy.window, policy.enforced]), results: make("p", {}), note: make("p", { class: "note" }) };
    const id = `chart-policy-${i}`;
    const chart = i < chartsMax ? [make("figure", {},
      make("figcaption", {}, policy.enforced ? "Refusals per second" : "Would have refused, per second"),
      make("div", { id, class: "chart small" }), make("ul", { id: `${id}-legend`, class: "legend" }))] : [];
    made.article = make("article", { class: "card" }, make("h3", {}, policy.name), make("p", {}, headline(policy)), made.results, made.note,
      ...(policy.enforced ? [make("pre", {}, fieldOf(policy))] : []), ...chart);
    return made;
  }

  function clearCards() {
    cards.forEach((each, i) => forgetChart(`chart-policy-${i}`));
    cards = null;
  }

  function showCards(policies) {
    const keys = policies.map((policy) => JSON.stringify([policy.name, policy.quota, policy.window, policy.enforced]));
    if (cards === null || cards.length !== keys.length || keys.some((key, i) => cards[i].key !== key)) {
      if (cards !== null) {
        clearCards();
      }
      cards = policies.map(card);
      $("policies").replaceChildren(...cards.map(({ article }) => article));
      showForm(policies);
    }
    policies.forEach((policy, i) => {
      cards[i].results.textContent = results(policy);
      cards[i].note.textContent = `Routes: ${policy.routes.join(", ") || "none"}${policy.blocked ? `; blocked for abuse: ${policy.blocked}` : ""}`;
      if (i < chartsMax) {
        draw(`chart-policy-${i}`, policy.enforced ? "refusals" : "shadow", policy.name);
      }
    });
  }

  // ---- one partition ----

  const nameOf = (each) => each.partition.map(({ source, value }) => (value === undefined ? `${source} (${each.key.slice(0, 12)}…)` : `${source} ${value}`)).join(", ") || "everyone";
  const wait = (seconds) => (seconds === undefined ? "–" : seconds >= 7200 ? `${Math.round(seconds / 3600)} h` : seconds >= 120 ? `${Math.round(seconds / 60)} min` : `${seconds} s`);

  function say(text, kind) {
    $("partition-answer").replaceChildren(make("p", kind ? { class: kind } : {}, text));
  }

  const act = (label, id, work) => button(label, { class: "plain", "data-id": id }, () => attempt($("partition-answer"), work));

  async function reset(each) {
    if (window.confirm(`Forget what ${nameOf(each)} has used of ${each.policy}?`)) {
      showPartition(await post("/api/v1/partitions/reset", { policy: each.policy, key: each.key }), "It was reset.");
      await refresh();
    }
  }

  async function takeBack(each) {
    await ask(`/api/v1/partitions/overrides?policy=${encodeURIComponent(each.policy)}&key=${each.key}`, { method: "DELETE" });
    say(`${nameOf(each)} has the quota of ${each.policy} again.`);
    await refresh();
  }

  /** What is known of a partition, and what can be done about it. */
  function showPartition(each, note) {
    const rows = [
      ["Policy", each.policy], ["Partition", nameOf(each)], ["Key", each.key],
      ["Left", `${each.remaining.toLocaleString("en")} of ${each.quota.toLocaleString("en")}`], ["Resets in", wait(each.reset)],
      ["Blocked for abuse", each.blocked ? `yes, for ${wait(each["blocked-for"])}` : "no"],
      ...(each["usual-quota"] === undefined ? [] : [["Temporary quota", `${each.quota} instead of ${each["usual-quota"]}, for ${wait(each.seconds)}`]]),
    ];
    const quota = make("input", { name: "quota", type: "number", min: "0", max: "999999999999999", value: String(Math.min(2 * each.quota, 999999999999999)), required: "" });
    const minutes = make("input", { name: "minutes", type: "number", min: "1", max: "43200", value: "60", required: "" });
    const form = make("form", { id: "raise-form", class: "row" }, make("label", {}, "Quota", quota), make("label", {}, "Minutes", minutes), make("button", {}, "Give it this quota"));
    onSubmit(form, $("partition-answer"), async () => {
      showPartition(await post("/api/v1/partitions/quota", { policy: each.policy, key: each.key, quota: Number(quota.value), seconds: Number(minutes.value) * 60 }), "It has another quota for a while.");
      await refresh();
    });
    const actions = make("p", {}, act("Reset", "reset", () => reset(each)));
    if (each["usual-quota"] !== undefined) {
      actions.append(" ", act("Take the temporary quota back", "take-back", () => takeBack(each)));
    }
    $("partition-answer").replaceChildren(...(note ? [make("p", { class: "good" }, note)] : []),
      make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The partition" },
        make("table", {}, make("tbody", {}, ...rows.map(([name, value]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, value)))))), actions, form);
  }

  async function raise(each) {
    showPartition(await post("/api/v1/partitions/lookup", { policy: each.policy, key: each.key }));
    $("raise-form").quota.focus();
  }

  // ---- looking one up ----

  let known = []; // the policies of the form

  function showSources() {
    const policy = known.find(({ name }) => name === $("partition-policy").value);
    const sources = policy ? policy.partition.sources : [];
    $("partition-values").replaceChildren(...sources.map((source) => make("label", {}, source, make("input", { name: "value", autocomplete: "off", spellcheck: "false" }))));
  }

  function showForm(policies) {
    const before = $("partition-policy").value;
    known = policies;
    $("partition-policy").replaceChildren(...policies.map(({ name }) => make("option", { value: name }, name)));
    if (policies.some(({ name }) => name === before)) {
      $("partition-policy").value = before;
    }
    showSources();
  }
  $("partition-policy").addEventListener("change", showSources);
  onSubmit($("partition-form"), $("partition-answer"), async (given) =>
    showPartition(await post("/api/v1/partitions/lookup", { policy: $("partition-policy").value, values: given.getAll("value") })));

  // ---- all of it ----

  async function refresh() {
    const [{ policies }, { partitions, window: seconds }, { overrides }] =
      await Promise.all([ask("/api/v1/policies"), ask("/api/v1/partitions?limit=20"), ask("/api/v1/partitions/overrides")]);
    showCards(policies);
    $("partitions-note").textContent = `Requests of the last ${seconds} seconds or so. Secrets are not shown.`;
    const id = (what, each) => `${what} ${each.policy} ${each.key}`;
    table($("partitions"), [["Policy"], ["Partition"], ["Requests", true], ["Refused", true], ["Left", true], ["Resets in", true], ["Do"]],
      partitions.map((each) => [each.policy, nameOf(each), Math.round(each.requests).toLocaleString("en"), Math.round(each.refused).toLocaleString("en"),
        `${each.remaining} of ${each.quota}`, wait(each.reset),
        make("span", { class: "actions" }, act("Reset", id("reset", each), () => reset(each)), act("Raise", id("raise", each), () => raise(each)))]),
      "No partition was used lately.");
    table($("overrides"), [["Policy"], ["Partition"], ["Quota", true], ["Usually", true], ["Ends in", true], ["Do"]],
      overrides.map((each) => [each.policy, nameOf(each), each.quota.toLocaleString("en"), each["usual-quota"] === undefined ? "–" : each["usual-quota"].toLocaleString("en"), wait(each.seconds),
        act("Take back", id("take", each), () => takeBack(each))]),
      "No partition has one.");
  }

  let isBusy = false;
  let turns = 0;
  return { policies: async () => {
    if (isBusy || (turns++ % 2 === 1 && cards !== null)) {
      return; // every other second
    }
    isBusy = true;
    try {
      await refresh();
    } catch (error) {
      if (isShown("policies")) {
        if (cards !== null) {
          clearCards();
        }
        failed($("policies"), error);
      }
    }
    isBusy = false;
  } };
});
