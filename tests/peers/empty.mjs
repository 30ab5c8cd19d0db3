// SPDX-License-Identifier: Apache-2.0
// Opens the consoles of gateways that nothing has happened to yet, in Chromium: node empty.mjs NEW WITHOUT_STORE
// NEW has no policy, no keys and no directory; the store of quotas of WITHOUT_STORE is not there.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [fresh, withoutStore, screenshots] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

async function open(browser, address, width, colorScheme) {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  await page.goto(address);
  await page.waitForSelector("#live.is-live");
  return { page, faults };
}
async function judge(page, what) {
  const { width } = page.viewportSize();
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= width, `${what} is too wide at ${width}`);
  await page.evaluate(axe);
  const found = await page.evaluate(async () => (await axe.run(document)).violations);
  assert.deepEqual(found.map(({ id, nodes }) => [id, nodes[0].html]), [], `${what} at ${width}`);
}
const says = (page, selector, text) => page.waitForFunction(([at, words]) => document.querySelector(at)?.textContent.includes(words), [selector, text]);

/** Each view says how to begin. */
async function learn(browser, width, colorScheme) {
  const { page, faults } = await open(browser, `${fresh}/`, width, colorScheme);
  await says(page, "#band .calm", "All is well");
  await says(page, "#first-request", "No request yet");
  assert.equal(await page.locator(".charts").isVisible(), false, "there is nothing to draw");
  await judge(page, "no request");
  if (screenshots) {
    await page.screenshot({ path: `${screenshots}/console-empty-${width}-${colorScheme}.png` });
  }
  for (const [view, into, words] of [["policies", "#policies-lesson", "policies:\n"], ["idempotency", "#keys-lesson", "idempotency: {mode: required}"], ["directory", "#directory-lesson", "service: scim"]]) {
    await page.click(`nav a[href="#/${view}"]`);
    await says(page, into, words);
    await judge(page, view);
  }
  assert.equal(await page.locator("#partition-form").isVisible(), false, "there is no policy to choose");
  assert.deepEqual(faults, []);
  await page.close();
}

/** The command that the page shows is the request that it waits for. */
async function begin(browser) {
  const { page, faults } = await open(browser, `${fresh}/`, 1440, "light");
  await says(page, "#first-request", "curl -i http://127.0.0.1:");
  const url = /curl -i (\S+)/.exec(await page.textContent("#first-request pre"))[1];
  assert.match(url, /\/v1\/$/, "the path of a route");
  assert.equal((await fetch(url)).status, 200);
  await page.waitForSelector("#first-request", { state: "hidden" });
  await page.waitForSelector(".charts", { state: "visible" });
  await page.waitForSelector("#chart-requests svg");
  assert.match(await page.textContent("#chart-refusals"), /Nothing was refused in the last 15 min/);
  await judge(page, "the first request");
  assert.deepEqual(faults, []);
  await page.close();
}

async function missStore(browser) {
  const { page, faults } = await open(browser, `${withoutStore}/`, 1440, "dark");
  await page.locator("#band a", { hasText: /^Store of quotas down since \d\d:\d\d \S+.*redis/ }).click();
  await page.waitForFunction(() => document.activeElement.dataset.part === "stores");
  assert.match(await page.textContent("#stores"), /quotaredisfailing since \d\d:\d\d/);
  await judge(page, "a store that is down");
  assert.deepEqual(faults, []);
  await page.close();
}

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
try {
  for (const [width, scheme] of [[1440, "light"], [1440, "dark"], [400, "light"], [400, "dark"]]) {
    await learn(browser, width, scheme);
  }
  await begin(browser);
  await missStore(browser);
} finally {
  await browser.close();
}
