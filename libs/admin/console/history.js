"use strict";
// SPDX-License-Identifier: Apache-2.0
// The last hour, as the gateway kept it: samples of five seconds. Each event has the last one; what was missed is asked for again.
globalThis.consoleHistory = (() => {
  let samples = []; // {n, at, seconds, responses, latency, keys, policies}, the oldest first
  let interval = 5;

  const at = (series, i) => (series === undefined ? 0 : series[i]);
  const pick = (group, i) => Object.assign(Object.create(null), Object.fromEntries(Object.entries(group).map(([name, series]) => [name, series[i]])));

  function add(told) {
    interval = told.interval;
    told.at.forEach((time, i) => {
      const before = samples.at(-1);
      samples.push({
        n: told.first + i, at: time, seconds: before ? Math.max((time - before.at) / 1000, 0.001) : interval,
        responses: pick(told.responses, i), latency: pick(told.latency, i), keys: pick(told.keys, i), failures: at(told["upstream-failures"], i),
        policies: new Map(told.policies.map((each) => [each.name, { admitted: at(each.admitted, i), refused: at(each.refused, i), shadow: at(each["shadow-refused"], i) }])),
      });
    });
  }

  return {
    /** Takes a piece from the beginning on. */
    replace: (told) => {
      samples = [];
      add(told);
    },
    /** Takes the newest sample. False where others are missing before it. */
    follow: (told) => {
      const last = samples.at(-1);
      if (told.at.length === 0 || (last && told.first === last.n)) {
        return true;
      }
      if (last && told.first !== last.n + 1) {
        return false;
      }
      add(told);
      return true;
    },
    /** Those of the last so many seconds. */
    since: (seconds) => samples.filter((each) => each.at > (samples.at(-1)?.at ?? 0) - seconds * 1000),
    last: () => samples.at(-1),
    /** Forgets what is older than any range. */
    trim: (seconds) => {
      const first = samples.findIndex((each) => each.at > samples.at(-1).at - seconds * 1000);
      samples.splice(0, first);
    },
    /** What all samples of a span have of a policy. */
    sumOf: (some, name) => some.reduce((sum, { policies }) => {
      const each = policies.get(name);
      return each ? { admitted: sum.admitted + each.admitted, refused: sum.refused + each.refused, shadow: sum.shadow + each.shadow } : sum;
    }, { admitted: 0, refused: 0, shadow: 0 }),
  };
})();
