"use strict";
// SPDX-License-Identifier: Apache-2.0
// The band on top: what is wrong, the worst first, each with a link to where it is seen or mended.
(globalThis.consoleViews ??= []).push(({ $, make, allOf, one, last, history, whole, percent, plural, clock, span, addAlways }) => {
  const seconds = 300; // what refuses or fails is judged by the last minutes
  const refusalsMin = 10;
  const refusedShare = 0.05;
  const errorShare = 0.02;
  const refusingMax = 3; // policies that are named
  const certificateDays = 14;

  /** `since 14:46 UTC`; of several the first. */
  const since = (times) => `since ${clock(Math.min(...times) * 1000)}`;

  function servers() {
    const all = allOf("tidegate_upstream_down_since_timestamp_seconds");
    const down = all.filter(([, value]) => value > 0);
    return down.length === 0 ? [] : [{ kind: "bad", to: "overview/upstreams", title: `${down.length} of ${plural(all.length, "server", "servers")} down ${since(down.map(([, value]) => value))}`,
      text: down.slice(0, 3).map(([labels]) => `${labels.upstream}: ${labels.server}`).join(", ") }];
  }
  function stores() {
    return allOf("tidegate_store_failing_since_timestamp_seconds").filter(([, value]) => value > 0).map(([labels, value]) => (
      { kind: "bad", to: "overview/stores", title: `Store of ${labels.store === "idempotency" ? "keys" : labels.store === "quota" ? "quotas" : "the directory"} down ${since([value])}`, text: labels.kind }));
  }
  function doubts() {
    const count = one("tidegate_idempotency_unresolved");
    return count === 0 ? [] : [{ kind: "bad", to: "idempotency/unknown", title: `${plural(count, "payment", "payments")} in doubt`, text: "retries wait for your decision" }];
  }
  function refusing(samples) {
    const names = new Set(samples.flatMap(({ policies }) => [...policies.keys()]));
    const found = [...names].map((name) => ({ name, ...history.sumOf(samples, name) }))
      .map((each) => ({ ...each, share: each.refused / Math.max(each.refused + each.admitted, 1) }))
      .filter(({ refused, share }) => refused >= refusalsMin && share >= refusedShare).sort((a, b) => b.share - a.share);
    return found.slice(0, refusingMax).map(({ name, refused, admitted }) => (
      { kind: "warn", to: `policies/${encodeURIComponent(name)}`, title: `Policy ${name} refuses ${percent(refused, refused + admitted)}`, text: `${whole(refused)} requests in the last 5 min` }));
  }
  function errors(samples) {
    const count = (names) => samples.reduce((sum, { responses }) => sum + names.reduce((each, name) => each + (responses[name] || 0), 0), 0);
    const [bad, all] = [count(["5xx"]), count(["2xx", "3xx", "4xx", "5xx", "429"])];
    return bad < refusalsMin || bad / all < errorShare ? [] : [{ kind: "bad", to: "overview/routes", title: `${percent(bad, all)} of answers are errors (5xx)`, text: `${whole(bad)} in the last 5 min` }];
  }
  function reload() {
    return last().metrics.has("tidegate_config_last_reload_successful") && one("tidegate_config_last_reload_successful") === 0
      ? [{ kind: "warn", to: "configuration", title: "The last reload was refused", text: "the configuration before it is still in force" }] : [];
  }
  function certificates() {
    const now = last().at / 1000;
    return allOf("tidegate_certificate_expiry_timestamp_seconds").filter(([, value]) => value < now + certificateDays * 86400).map(([labels, value]) => (
      { kind: value < now ? "bad" : "warn", to: "configuration", title: value < now ? `The certificate of ${labels.listener} has expired` : `The certificate of ${labels.listener} expires in ${span(Math.floor(value - now))}`, text: clock(value * 1000) }));
  }
  const full = () => (one("tidegate_idempotency_store_full") === 1 ? [{ kind: "bad", to: "overview/stores", title: "The store of keys is full", text: "new keys get 503" }] : []);

  function calm(samples) {
    const count = allOf("tidegate_upstream_up").length;
    const refused = samples.reduce((sum, { responses }) => sum + (responses["429"] || 0), 0);
    return [...(count > 0 ? [`${count === 1 ? "the server is" : `all ${count} servers are`} up`] : []), "no request is in doubt",
      refused === 0 ? "nothing was refused lately" : `${plural(refused, "request was", "requests were")} refused in the last 5 min`].join(", ");
  }

  let drawn = "";
  addAlways(() => {
    const samples = history.since(seconds);
    const found = [...servers(), ...stores(), ...doubts(), ...full(), ...errors(samples), ...refusing(samples), ...reload(), ...certificates()];
    const key = JSON.stringify([found, found.length === 0 && calm(samples)]);
    if (key === drawn) {
      return; // so that whoever stands on a link still does
    }
    drawn = key;
    const at = document.activeElement?.dataset.to;
    $("band").replaceChildren(...(found.length > 0 ? found.map(({ kind, to, title, text }) => make("a", { class: kind, href: `#/${to}`, "data-to": to }, make("strong", {}, title), " ", make("span", {}, text)))
      : [make("p", { class: "calm" }, make("strong", {}, "All is well"), " ", make("span", {}, calm(samples)))]));
    [...$("band").querySelectorAll("a")].find((each) => each.dataset.to === at)?.focus();
  });
  return {};
});
