"use strict";
// SPDX-License-Identifier: Apache-2.0
// The view of the configuration: what is in force and where it comes from, and what a reload would change.
(globalThis.consoleViews ??= []).push(({ $, make, ask, attempt, table, confirmThat, plural, caller }) => {
  let options = [];
  let truncated = false;
  const narrow = window.matchMedia("(max-width: 640px)"); // there groups are folded at first
  const turned = new Map(); // whether a group is open, of those that were turned by hand

  const groupOf = ({ path }) => /^[^.[]*/.exec(path)[0];

  function showOptions() {
    const words = $("config-filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const candidates = options.filter(({ origin }) => !$("config-set").checked || origin !== "default");
    const found = candidates.filter(({ path, value, origin }) => {
      const text = `${path} ${value} ${origin}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    $("config-note").textContent = `${found.length} of ${plural(options.length, "option", "options")}${$("config-set").checked ? "; the others have their defaults" : ""}${truncated ? "; there are more than are shown" : ""}. Secrets are not shown.`;
    const groups = new Map();
    for (const each of found) {
      groups.set(groupOf(each), [...(groups.get(groupOf(each)) || []), each]);
    }
    $("config-options").replaceChildren(...(groups.size === 0 ? [make("p", { class: "is-empty" }, "No option has these words.")] : [...groups].map(([name, some]) => {
      const rows = make("table", { class: "options" });
      table(rows, [["Option"], ["Value"], ["From"]], some.map(({ path, value, origin }) => [path, value, origin]), "");
      const group = make("details", { class: "group" }, make("summary", {}, make("strong", {}, name), ` ${some.length}`), rows);
      group.open = words.length > 0 || (turned.get(name) ?? !narrow.matches);
      group.firstChild.addEventListener("click", () => turned.set(name, !group.open));
      return group;
    })));
  }

  const said = (value) => (value === null ? "–" : value);

  function showChanges(changes) {
    if (changes.length === 0) {
      return [make("p", {}, "Nothing: the files say what is in force.")];
    }
    const rows = make("table", { class: "options" });
    table(rows, [["Option"], ["Now"], ["Then"], ["Takes effect"]], changes.map((each) => [each.path, said(each.from), said(each.to), each["takes-effect"]]), "");
    return [rows];
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
  $("config-set").addEventListener("change", showOptions);
  $("config-look").addEventListener("click", show);
  $("config-reload").disabled = caller["read-only"];
  $("config-reload").addEventListener("click", () => attempt($("config-changes"), async () => {
    if (await confirmThat({ title: "Reload the configuration?", text: "The gateway reads its configuration again, as with SIGHUP. Requests that are under way keep the old one.", label: "Reload" })) {
      const { changes } = await ask("/api/v1/config/reload", { method: "POST" });
      const count = changes.filter((each) => each["takes-effect"] === "on reload").length;
      await showAll();
      $("config-changes").replaceChildren(make("p", { class: "good" }, `Reloaded: ${plural(count, "change", "changes")} applied.`));
    }
  }));

  return { configuration: show };
});
