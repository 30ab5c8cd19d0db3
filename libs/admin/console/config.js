"use strict";
// SPDX-License-Identifier: Apache-2.0
// The view of the configuration: what is in force and where it comes from, and what a reload would change.
(globalThis.consoleViews ??= []).push(({ $, make, ask, attempt, table, caller }) => {
  let options = [];
  let truncated = false;

  function showOptions() {
    const words = $("config-filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = options.filter(({ path, value, origin }) => {
      const text = `${path} ${value} ${origin}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    $("config-note").textContent = `${found.length} of ${options.length} options${truncated ? "; there are more than are shown" : ""}. Secrets are not shown.`;
    table($("config-options"), [["Option"], ["Value"], ["From"]], found.map(({ path, value, origin }) => [path, value, origin]), "No option has these words.");
  }

  const said = (value) => (value === null ? "–" : value);

  function showChanges(changes) {
    if (changes.length === 0) {
      return [make("p", {}, "Nothing: the files say what is in force.")];
    }
    const rows = make("table", {});
    table(rows, [["Option"], ["Now"], ["Then"], ["Takes effect"]], changes.map((each) => [each.path, said(each.from), said(each.to), each["takes-effect"]]), "");
    return [make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Changes" }, rows)];
  }

  /** What is wrong with the files, or why a reload would be refused. */
  const showFaults = (faults, reason) => [
    make("p", { class: "error" }, reason ? `Not possible: ${reason}.` : "Not possible: the configuration has faults."),
    ...(faults.length ? [make("ul", {}, ...faults.map((each) => make("li", {}, typeof each === "string" ? each : `${each.place}: ${each.message}`)))] : []),
  ];

  const look = () => attempt($("config-changes"), async () => {
    const seen = await ask("/api/v1/config/reload");
    $("config-changes").replaceChildren(...(seen.possible ? showChanges(seen.changes) : showFaults(seen.faults, seen.reason)));
  });

  const showAll = () => attempt($("config-changes"), async () => {
    ({ options, truncated } = await ask("/api/v1/config"));
    showOptions();
  });

  const show = () => Promise.all([showAll(), look()]);

  $("config-filter").addEventListener("input", showOptions);
  $("config-look").addEventListener("click", show);
  $("config-reload").disabled = caller["read-only"];
  $("config-reload").addEventListener("click", () => attempt($("config-changes"), async () => {
    if (window.confirm("The gateway reads its configuration again, as with SIGHUP.")) {
      const { changes } = await ask("/api/v1/config/reload", { method: "POST" });
      const count = changes.filter((each) => each["takes-effect"] === "on reload").length;
      await showAll();
      $("config-changes").replaceChildren(make("p", {}, `Reloaded: ${count === 1 ? "1 change" : `${count} changes`} taken over.`));
    }
  }));

  return { configuration: show };
});
