// SPDX-License-Identifier: Apache-2.0
// Opens the console in Chromium, at both widths and in both themes: node browser.mjs GATEWAY ADMIN [SCREENSHOTS]
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [gateway, admin, screenshots] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const views = ["overview", "policies", "idempotency", "explain", "configuration"];

async function load() {
  for (let i = 0; i < 30; ++i) {
    await fetch(`${gateway}/scim/v2/Users?count=1`, { headers: { Authorization: "Bearer bench" } });
  }
}

async function visit(browser, width, colorScheme) {
  const page = await browser.newPage({ viewport: { width, height: 1000 }, colorScheme });
  const faults = [];
  const requests = [];
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("dialog", (dialog) => dialog.accept());
  page.on("request", (request) => requests.push(request.url()));
  await page.route((url) => url.origin !== new URL(admin).origin && url.protocol !== "data:", (route) => {
    faults.push(`asks for ${route.request().url()}`);
    return route.abort();
  });
  const answer = await page.goto(`${admin}/`);
  assert.ok((await answer.body()).length < 400_000, "the page is too heavy");
  // What is shown first came with the page.
  assert.equal(await page.locator("#tiles dt").count(), 8);
  assert.deepEqual(requests.filter((url) => url.startsWith("http") && !url.endsWith("/api/v1/events")), [`${admin}/`]);
  await page.waitForSelector("#live.is-live");
  await load();
  await page.waitForFunction(() => document.querySelectorAll("#routes tbody tr td").length > 1);
  await page.waitForFunction(() => document.querySelector("#chart-requests canvas") !== null);

  // By the keyboard alone: to the first link of the views and on.
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  for (const view of views) {
    assert.equal(await page.evaluate(() => document.activeElement.hash), `#${view}`, "not reached by Tab");
    await page.keyboard.press("Enter");
    await page.waitForSelector(`#view-${view}`, { state: "visible" });
    if (view === "policies") {
      await page.waitForFunction(() => document.querySelector("#policies")?.textContent.includes('RateLimit-Policy: "constructor";q=20;w=60'));
      await page.waitForFunction(() => document.querySelector("#partitions tbody")?.textContent.includes("client-ip 127.0.0.1"));
    }
    if (view === "explain") {
      await page.fill("#explain-text", 'RateLimit-Policy: "default";q=20;w=60\nRateLimit: "default";r=5;t=9\nRetry-After: 3');
      await page.click("#explain-form button");
      await page.waitForFunction(() => document.querySelector("#explain-answer")?.textContent.includes("5 of 20"));
    }
    if (view === "configuration") {
      await page.waitForFunction(() => document.querySelector("#config-options tbody")?.textContent.includes("policies.constructor.quota"));
      await page.waitForFunction(() => document.querySelector("#config-changes")?.textContent.includes("Nothing"));
    }
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= width, `${view} is ${wide} wide at ${width}`);
    await page.evaluate(axe);
    const found = await page.evaluate(async () => (await axe.run(document)).violations);
    const serious = found.filter(({ impact }) => impact === "serious" || impact === "critical");
    assert.deepEqual(serious.map(({ id, nodes }) => [id, nodes[0].html]), [], `${view} at ${width}, ${colorScheme}`);
    if (screenshots) {
      await page.screenshot({ path: `${screenshots}/console-${view}-${width}-${colorScheme}.png`, fullPage: true });
    }
    await page.focus(`nav a[href="#${view}"]`);
    await page.keyboard.press("Tab");
  }
  await page.click("#theme");
  const theme = await page.evaluate(() => document.documentElement.dataset.theme);
  assert.notEqual(theme, colorScheme);
  assert.deepEqual(faults, []);
  await page.close();
}

/** A key is looked up and forgotten, by whoever has its scope. */
async function forget(browser) {
  const sent = await fetch(`${gateway}/scim/v2/Users`, {
    method: "POST",
    headers: { Authorization: "Bearer bench", "Content-Type": "application/scim+json", "Idempotency-Key": '"k1"' },
    body: JSON.stringify({ schemas: ["urn:ietf:params:scim:schemas:core:2.0:User"], userName: "ada" }),
  });
  assert.equal(sent.status, 201);
  const page = await browser.newPage();
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("dialog", (dialog) => dialog.accept());
  await page.goto(`${admin}/#idempotency`);
  const lookUp = async (scope, key) => {
    await page.fill("textarea[name=scope]", scope);
    await page.fill("input[name=key]", key);
    await page.click("#key-form button");
  };
  await lookUp("bench", "never-used");
  await page.waitForSelector("#key-answer .error");
  await lookUp("bench", "k1");
  await page.waitForFunction(() => document.querySelector("#key-answer")?.textContent.includes("completed"));
  await page.click("#key-answer button");
  await page.waitForFunction(() => document.querySelector("#key-answer")?.textContent === "Forget it: done.");
  await lookUp("bench", "k1");
  await page.waitForSelector("#key-answer .error");
  // The link for those who use no mouse stays in the view.
  await page.focus(".skip");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  assert.ok(await page.isVisible("#view-idempotency"));
  assert.deepEqual(faults, []);
  await page.close();
}

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
try {
  await forget(browser); // before the quota is spent
  for (const [width, scheme] of [[1600, "light"], [1600, "dark"], [400, "light"], [400, "dark"]]) {
    await visit(browser, width, scheme);
  }
} finally {
  await browser.close();
}
