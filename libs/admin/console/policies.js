"use strict";
// SPDX-License-Identifier: Apache-2.0
// Policies and their clients: what they are, what is left, and what can be done about it.
(globalThis.consoleViews ??= []).push(({ $, make, button, redraw, table, lesson, confirmThat, ask, post, failed, attempt, onSubmit, whole, percent, span, isShown, history, shownHistory, reach, caller }) => {
  const { Chart } = globalThis.consoleCharts;
  const chartsMax = 20; // policies with a chart of their own
  const units = { requests: "requests", "content-bytes": "bytes", "concurrent-requests": "requests at a time" };

  /** The quota of a policy, or those of its plans. */
  const quotasOf = ({ quota, quotas }) => {
    if (!quotas) {
      return whole(quota);
    }
    const plans = Object.entries(quotas.plans || {}).map(([plan, each]) => `${plan}: ${whole(each)}, `).join("");
    return quotas.max === undefined ? `${plans}others: ${whole(quota)}` : `${whole(quota)}, or what ${quotas.by} says up to ${whole(quotas.max)},`;
  };
  /** What a policy allows, in words. */
  const headline = (policy) => {
    const who = policy.partition.sources.join(" and ");
    return `${quotasOf(policy)} ${units[policy.unit] || policy.unit}${policy.window ? ` in ${span(policy.window)}` : ""}, ` + (who ? `for each ${who}` : "for everyone together");
  };
  /** The policy as a header of draft-09, without the partition key. */
  const headerOf = (policy) => `RateLimit-Policy: "${policy.name.replace(/["\\]/g, "\\$&")}";q=${policy.quota}` +
    (policy.unit === "requests" ? "" : `;qu="${policy.unit}"`) + (policy.window ? `;w=${policy.window}` : "");

  // ---- the policies ----

  let cards = []; // {key, article, results, note, figure, chart}, in the order of the policies

  const keyOf = (policy) => JSON.stringify([policy.name, policy.quota, policy.quotas, policy.window, policy.enforced]);
  function card(policy) {
    const place = make("div", { class: "chart small", "data-title": `Requests under ${policy.name}` });
    const made = { key: keyOf(policy), results: make("p", { class: "result" }), note: make("p", { class: "note" }), chart: new Chart(place),
      figure: make("figure", {}, make("figcaption", {}, policy.enforced ? "Admitted and refused" : "Admitted, and what it would refuse"), place) };
    made.figure.hidden = true;
    made.article = make("article", { class: "card", "data-part": policy.name, tabindex: "-1" },
      make("h3", {}, policy.name, " ", make("span", { class: `tag${policy.enforced ? "" : " warning"}` }, policy.enforced ? policy.algorithm ?? "at a time" : "shadow: only watches")),
      make("p", {}, headline(policy)), made.results, made.figure, ...(policy.enforced ? [make("pre", {}, headerOf(policy))] : []), made.note);
    return made;
  }
  function showResult(made, policy) {
    const [refused, admitted] = policy.enforced ? [policy.refused + policy.blocked, policy.admitted] : [policy["shadow-refused"], policy.admitted];
    made.results.replaceChildren(...(refused + admitted === 0 ? ["No request yet."] : [make("strong", { class: refused > 0 ? "warning" : "good" }, percent(refused, refused + admitted)),
      ` of ${whole(refused + admitted)} requests ${policy.enforced ? "refused" : "would have been refused"}`]));
    made.note.textContent = `Routes: ${policy.routes.join(", ") || "none"}${policy.blocked ? `; blocked for abuse: ${whole(policy.blocked)}` : ""}`;
    const { samples, at, from, to } = shownHistory();
    const sum = history.sumOf(samples, policy.name);
    made.figure.hidden = (policy.enforced ? sum.refused : sum.shadow) === 0; // what never refused has no chart
    if (!made.figure.hidden) {
      made.chart.show({ at, from, to, isStack: true, unit: "/s", empty: "", series: [["admitted", "c-2xx"], ["refused", "c-429"]].map(([name, kind]) => (
        { name: name === "refused" && !policy.enforced ? "would have refused" : name, kind, values: samples.map(({ policies, seconds }) => {
          const each = policies.get(policy.name) || { admitted: 0, refused: 0, shadow: 0 };
          return (name === "refused" ? (policy.enforced ? each.refused : each.shadow) : each.admitted) / seconds;
        }) })) });
    }
  }
  function showCards(policies) {
    $("policies-rest").hidden = policies.length === 0;
    if (policies.length === 0) {
      cards = [];
      $("policies").replaceChildren();
      lesson($("policies-lesson"), "No policy yet", "A first limit, for the configuration: each address gets 100 requests a minute. Then reload.",
        "policies:\n  per-address: {quota: 100, window: 1m, partition: [client-ip]}\nroutes:\n  - {match: {path: /**}, upstream: api, limits: [per-address]}");
      return;
    }
    $("policies-lesson").hidden = true;
    if (cards.length !== policies.length || policies.some((policy, i) => cards[i].key !== keyOf(policy))) {
      cards = policies.map(card);
      $("policies").replaceChildren(...cards.map(({ article }) => article));
      showForm(policies);
    }
    policies.slice(0, chartsMax).forEach((policy, i) => showResult(cards[i], policy));
  }

  // ---- one client under one policy: a partition ----

  const nameOf = (each) => each.partition.map(({ source, value }) => (value === undefined ? `${source} (${each.key.slice(0, 12)}…)` : `${source} ${value}`)).join(", ") || "everyone together";

  function say(text, kind) {
    $("partition-answer").replaceChildren(make("p", kind ? { class: kind } : {}, text));
  }
  const act = (label, id, work, kind = "plain") => {
    const made = button(label, { class: kind, "data-id": id }, () => attempt($("partition-answer"), work));
    made.disabled = caller["read-only"];
    return made;
  };
  const bar = (each) => {
    const full = make("span", { class: `bar${each.remaining === 0 ? " is-spent" : each.remaining < each.quota / 5 ? " is-low" : ""}`, "aria-hidden": "true" }, make("span", {}));
    full.firstChild.style.width = `${Math.min(100, (100 * each.remaining) / Math.max(each.quota, 1))}%`;
    return full;
  };
  const left = (each) => `${whole(each.remaining)} of ${whole(each.quota)} left`;

  async function reset(each) {
    if (await confirmThat({ title: `Reset ${each.policy}?`, text: `What ${nameOf(each)} has used of it is forgotten, and so is a block for abuse: the whole quota is there again.`, label: "Reset" })) {
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
      ["Policy", each.policy], ["Client", nameOf(each)], ["Key", each.key], ["Left", make("span", { class: "left" }, bar(each), left(each))], ["Resets in", span(each.reset)],
      ["Blocked for abuse", each.blocked ? `yes, for ${span(each["blocked-for"])}` : "no"],
      ...(each["usual-quota"] === undefined ? [] : [["Temporary quota", `${whole(each.quota)} instead of ${whole(each["usual-quota"])}, for ${span(each.seconds)}`]]),
    ];
    const quota = make("input", { name: "quota", type: "number", min: "0", max: "999999999999999", value: String(Math.min(2 * each.quota, 999999999999999)), required: "" });
    const minutes = make("input", { name: "minutes", type: "number", min: "1", max: "43200", value: "60", required: "" });
    const give = make("button", {}, "Give it this quota");
    give.disabled = caller["read-only"];
    const form = make("form", { id: "raise-form", class: "filters" }, make("label", {}, "Quota", quota), make("label", {}, "Minutes", minutes), give);
    onSubmit(form, $("partition-answer"), async () => {
      showPartition(await post("/api/v1/partitions/quota", { policy: each.policy, key: each.key, quota: Number(quota.value), seconds: Number(minutes.value) * 60 }), "It has another quota for a while.");
      await refresh();
    });
    const actions = make("p", { class: "buttons" }, act("Reset", "reset", () => reset(each)));
    if (each["usual-quota"] !== undefined) {
      actions.append(act("Take the temporary quota back", "take-back", () => takeBack(each)));
    }
    $("partition-answer").replaceChildren(make("div", { class: "card" }, ...(note ? [make("p", { class: "good" }, note)] : []),
      make("dl", { class: "record-facts" }, ...rows.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)))), actions, form));
  }
  async function raise(each) {
    showPartition(await post("/api/v1/partitions/lookup", { policy: each.policy, key: each.key }));
    $("raise-form").scrollIntoView({ block: "center" });
    $("raise-form").quota.focus();
  }

  // ---- the busiest clients, each with its policies ----

  function client(all) {
    const most = Math.max(...all.map(({ requests }) => requests));
    return make("article", { class: "client" }, make("h4", {}, nameOf(all[0]), " ", make("span", { class: "note" }, `${whole(most)} ${Math.round(most) === 1 ? "request" : "requests"}`)),
      ...all.map((each) => make("div", { class: "policy" }, make("span", { class: "name" }, each.policy), make("span", { class: "left" }, bar(each), left(each)),
        make("span", { class: "resets" }, each.reset === undefined ? "" : `resets in ${span(each.reset)}`),
        make("span", { class: each.refused >= 0.5 ? "refused warning" : "refused note" }, `${whole(each.refused)} refused`),
        make("span", { class: "buttons" }, act("Reset", `reset ${each.policy} ${each.key}`, () => reset(each), "plain small"), act("Raise", `raise ${each.policy} ${each.key}`, () => raise(each), "plain small")))));
  }
  function showClients(partitions, seconds) {
    const all = new Map();
    for (const each of partitions) {
      all.set(each.key, [...(all.get(each.key) || []), each].sort((a, b) => (a.policy < b.policy ? -1 : 1)));
    }
    $("partitions-note").textContent = `Requests of the last ${seconds} seconds or so. Secrets are not shown.`;
    redraw($("clients"), ...(all.size > 0 ? [...all.values()].map(client) : [make("p", { class: "is-empty" }, "No client was seen lately. A request to a route with this policy shows one.")]));
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
      await Promise.all([ask("/api/v1/policies"), ask("/api/v1/partitions?limit=40"), ask("/api/v1/partitions/overrides")]);
    if ($("question").open) {
      return;
    }
    showCards(policies);
    showClients(partitions, seconds);
    table($("overrides"), [["Policy"], ["Client"], ["Quota", true], ["Usually", true], ["Ends in", true], ["Actions"]],
      overrides.map((each) => [each.policy, nameOf(each), whole(each.quota), each["usual-quota"] === undefined ? "–" : whole(each["usual-quota"]), span(each.seconds),
        act("Take back", `take ${each.policy} ${each.key}`, () => takeBack(each), "plain small")]),
      "No client has one.");
    reach();
  }

  let isBusy = false;
  let turns = 0;
  return { policies: async () => {
    if (isBusy || (turns++ % 2 === 1 && cards.length > 0)) {
      return; // every other second
    }
    isBusy = true;
    try {
      await refresh();
    } catch (error) {
      if (isShown("policies")) {
        cards = [];
        failed($("policies"), error);
      }
    }
    isBusy = false;
  } };
});
