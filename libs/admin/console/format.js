"use strict";
// SPDX-License-Identifier: Apache-2.0
// How the console writes numbers, times and spans of time: one format for all views.
globalThis.consoleFormat = (() => {
  const whole = (value) => Math.round(value).toLocaleString("en");
  const number = (value) => (value === 0 ? "0" : value >= 100 ? whole(value) : value >= 10 ? value.toFixed(1) : value.toFixed(2));
  function percent(part, all) {
    const share = all > 0 ? (part / all) * 100 : 0;
    return `${share === 0 ? "0" : share < 0.1 ? "< 0.1" : share < 10 ? share.toFixed(1) : Math.round(share)}\u00a0%`;
  }
  const plural = (count, one, many) => `${whole(count)} ${count === 1 ? one : many}`;

  // ---- times, by the clock of the reader and with its zone ----

  const zoneOf = (date) => new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" }).formatToParts(date).find(({ type }) => type === "timeZoneName").value;
  const two = (value) => String(value).padStart(2, "0");
  const dayOf = (date) => `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  const minuteOf = (date) => `${two(date.getHours())}:${two(date.getMinutes())}`;
  const secondOf = (date) => `${minuteOf(date)}:${two(date.getSeconds())}`;
  /** `2026-11-18 14:46:02 UTC` */
  function moment(value) {
    const date = new Date(value);
    return `${dayOf(date)} ${secondOf(date)} ${zoneOf(date)}`;
  }
  /** `14:46 UTC`, with the day when that is not today. */
  function clock(value) {
    const date = new Date(value);
    return `${dayOf(date) === dayOf(new Date()) ? "" : `${dayOf(date)} `}${minuteOf(date)} ${zoneOf(date)}`;
  }

  const units = [[86400, "day", "days"], [3600, "h", "h"], [60, "min", "min"], [1, "s", "s"]];
  /** `< 1 s`, `90 s`, `1 h`, `1 day`: in the largest unit that says it well. */
  function span(seconds) {
    if (seconds === undefined || seconds === null) {
      return "–";
    }
    if (seconds < 1) {
      return "< 1 s";
    }
    const [size, one, many] = units.find(([each]) => seconds >= 2 * each || Math.abs(seconds - each) <= each / 120) || units.at(-1);
    const count = Math.round(seconds / size);
    return `${count} ${count === 1 ? one : many}`;
  }
  const ago = (value, now) => ((now - value) / 1000 < 5 ? "just now" : `${span(Math.round((now - value) / 1000))} ago`);

  return { whole, number, percent, plural, moment, clock, span, ago, secondOf, minuteOf, zoneOf };
})();
