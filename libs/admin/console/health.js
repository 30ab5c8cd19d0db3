"use strict";
// SPDX-License-Identifier: Apache-2.0
// How upstreams and stores are, in the overview.
(globalThis.consoleViews ??= []).push(({ $, make, number, table, last, addToOverview }) => {
  const failuresMax = 3; // after so many in a row a server is taken out, if there is another one

  const state = (word, kind) => make("span", { class: kind }, word);

  function servers(metrics) {
    const made = new Map();
    const read = (name, member) => {
      for (const [labels, value] of metrics.get(name) || []) {
        const key = JSON.stringify([labels.upstream, labels.server]);
        made.set(key, { upstream: labels.upstream, server: labels.server, ...made.get(key), [member]: value });
      }
    };
    read("tidegate_upstream_up", "up");
    read("tidegate_upstream_in_flight", "inFlight");
    read("tidegate_upstream_failures_total", "failures");
    read("tidegate_upstream_failures_in_a_row", "inARow");
    return [...made.values()];
  }
  const isWell = (server) => server.up === 1 && server.inARow < failuresMax;

  function wordFor(server) {
    if (isWell(server)) {
      return state("up", "good");
    }
    if (server.up === 1) {
      return state(`failing: ${server.inARow} in a row`, "error");
    }
    return server.up === 0 ? state("taken out", "error") : state(`taken out by ${number((1 - server.up) * 100)} % of the threads`, "warning");
  }

  addToOverview(() => {
    const heard = last();
    if (!heard) {
      return;
    }
    const all = servers(heard.metrics);
    const stores = (heard.metrics.get("tidegate_store_failing_since_timestamp_seconds") || []).map(([labels, since]) => ({ ...labels, since }));
    const well = all.filter(isWell).length;
    const failing = stores.filter(({ since }) => since > 0);
    const tile = (name, value) => make("div", {}, make("dt", {}, name), make("dd", {}, value));
    $("tiles").append(
      tile("Servers", all.length === 0 ? "–" : state(`${well} of ${all.length} up`, well === all.length ? "good" : "error")),
      tile("Stores", failing.length === 0 ? state("ok", "good") : state(`${failing.map(({ store }) => store).join(", ")} failing`, "error")));
    table($("upstreams"), [["Upstream"], ["Server"], ["State"], ["In flight", true], ["Failures", true]],
      all.map((each) => [each.upstream, each.server, wordFor(each), String(each.inFlight), each.failures.toLocaleString("en")]),
      "No route has an upstream.");
    table($("stores"), [["Store"], ["Kind"], ["State"]],
      stores.map((each) => [each.store, each.kind, each.since === 0 ? state("ok", "good") : state(`failing since ${new Date(each.since * 1000).toLocaleTimeString("en-GB")}`, "error")]),
      "No route needs a store.");
  });
});
