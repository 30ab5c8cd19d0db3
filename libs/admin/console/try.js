"use strict";
// SPDX-License-Identifier: Apache-2.0
// Try it: sends requests through the gateway and explains the headers of what comes back, or of what is pasted.
(globalThis.consoleViews ??= []).push(({ $, make, table, post, ask, attempt, onSubmit }) => {
  const kept = 50; // answers in the table
  const beside = 4; // in full, side by side
  const timesMax = 50;

  const findings = (all) => all.map((each) => make("article", { class: "card" },
    make("h4", { class: each.severity }, each.severity === "info" ? each.field : `${each.field}: ${each.severity}`),
    make("p", {}, `${each.text}.`),
    ...(each.specification ? [make("p", { class: "note" }, `${each.specification}${each.section ? `, section ${each.section}` : ""}`)] : [])));

  // ---- explain ----

  onSubmit($("explain-form"), $("explain-answer"), async () => {
    const told = await ask("/api/v1/explain", { method: "POST", headers: { "Content-Type": "text/plain" }, body: $("explain-text").value });
    $("explain-answer").replaceChildren(...(told.findings.length > 0 ? findings(told.findings)
      : [make("p", { class: "is-empty" }, "There is no header here that says something about quotas or keys.")]));
  });

  // ---- send ----

  const answers = []; // the newest first: {number, sent, got}
  let sent = 0;
  let isSending = false;

  const field = (got, name) => got.fields.filter(([each]) => each.toLowerCase() === name).map(([, value]) => value).join(", ");
  /** `default r=5 t=9` for each policy. */
  const limits = (got) => {
    const found = [...field(got, "ratelimit").matchAll(/"((?:[^"\\]|\\.)*)";r=(\d+)(?:;t=(\d+))?/g)];
    return found.map(([, name, left, reset]) => `${name.replace(/\\(.)/g, "$1")}: r ${left}${reset === undefined ? "" : `, t ${reset}`}`).join("; ") || "–";
  };

  function showAnswers() {
    table($("try-answers"), [["Request"], ["Status"], ["Left (r) and reset (t)"], ["Retry-After"], ["Replayed"], ["ms", true]],
      answers.map(({ number, request, got }) => [`${number}. ${request}`, `${got.status} ${got.reason}`, limits(got), field(got, "retry-after") || "–",
        field(got, "idempotent-replayed") || "–", got.milliseconds.toFixed(1)]), "Nothing was sent yet. Send a request ten times and see how its quota falls.");
    $("try-beside").replaceChildren(...answers.slice(0, beside).map(({ number, request, got }) => make("article", { class: "card" },
      make("h3", {}, `${number}. ${got.status} ${got.reason}`), make("p", { class: "note" }, `${request}, ${got.milliseconds.toFixed(1)} ms`),
      make("pre", {}, got.fields.map(([name, value]) => `${name}: ${value}`).join("\n")),
      make("details", {}, make("summary", {}, `Body, ${got["body-octets"].toLocaleString("en")} bytes${got.whole ? "" : " so far: it was cut"}`), make("pre", {}, got.body)),
      make("details", {}, make("summary", {}, "Explained"), ...(got.findings.length > 0 ? findings(got.findings) : [make("p", { class: "is-empty" }, "No header says something about quotas or keys.")])))));
  }

  function request() {
    const asked = new FormData($("try-form"));
    const fields = asked.get("fields").split("\n").map((line) => line.trim()).filter((line) => line !== "").map((line) => {
      const colon = line.indexOf(":");
      if (colon < 1) {
        throw new Error(`Not a header: ${line}. Write "Name: value", one in each line.`);
      }
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    });
    const made = { method: asked.get("method"), path: asked.get("path"), fields };
    if (asked.get("host")) {
      made.host = asked.get("host");
    }
    if (asked.get("body")) {
      made.body = asked.get("body");
    }
    return made;
  }

  /** One after the other, so that each is seen with what it left. */
  async function send(times) {
    if (isSending) {
      return;
    }
    isSending = true;
    await attempt($("try-state"), async () => {
      const made = request();
      $("try-state").replaceChildren();
      for (let i = 0; i < Math.min(times, timesMax); ++i) {
        const got = await post("/api/v1/try", made);
        answers.unshift({ number: ++sent, request: `${made.method} ${made.path}`, got });
        answers.length = Math.min(answers.length, kept);
        showAnswers();
      }
      $("try-state").replaceChildren(make("p", {}, `Sent ${Math.min(times, timesMax)}: ${limits(answers[0].got)}`));
    });
    isSending = false;
  }

  onSubmit($("try-form"), $("try-state"), () => send(1));
  $("try-times").addEventListener("input", () => {
    const times = Number($("try-times").value) || 1;
    $("try-many").textContent = `Send ${times === 1 ? "once" : `${times} times`}`;
  });
  $("try-many").addEventListener("click", () => {
    if ($("try-form").reportValidity()) {
      send(Number($("try-times").value));
    }
  });
  showAnswers();

  return { try: () => {} };
});
