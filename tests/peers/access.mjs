// SPDX-License-Identifier: Apache-2.0
// Logs in at the console in Chromium and looks at the configuration, at both widths and in both themes:
// node access.mjs ADMIN CONFIG [SCREENSHOTS]. CONFIG is the file of the gateway, which is changed and put back.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [admin, file, screenshots] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const config = readFileSync(file, "utf8");

async function open(context) {
  const page = await context.newPage();
  const faults = [];
  // A wrong token is not a fault of the page.
  page.on("console", (message) => message.type() === "error" && !/status of (401|422)/.test(message.text()) && faults.push(message.text()));
  page.on("pageerror", (error) => faults.push(String(error)));
  await page.route((url) => url.origin !== new URL(admin).origin && url.protocol !== "data:", (route) => {
    faults.push(`asks for ${route.request().url()}`);
    return route.abort();
  });
  await page.goto(`${admin}/`);
  return [page, faults];
}

async function judge(page, what, width, scheme) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= width, `${what} is ${wide} wide at ${width}`);
  await page.evaluate(axe);
  const found = await page.evaluate(async () => (await axe.run(document)).violations);
  assert.deepEqual(found.map(({ id, nodes }) => [id, nodes[0].html]), [], `${what} at ${width}, ${scheme}`);
  if (screenshots) {
    await page.screenshot({ path: `${screenshots}/console-${what}-${width}-${scheme}.png`, fullPage: true });
  }
}

const says = (page, selector, text) => page.waitForFunction(([at, words]) => document.querySelector(at)?.textContent.includes(words), [selector, text]);

/** By the keyboard alone: the field has the focus. */
async function logIn(page, token) {
  assert.equal(await page.evaluate(() => document.activeElement.id), "token");
  await page.keyboard.type(token);
  await page.keyboard.press("Enter");
}

async function visit(browser, width, colorScheme) {
  const context = await browser.newContext({ viewport: { width, height: 1000 }, colorScheme });
  const [page, faults] = await open(context);
  assert.equal(await page.locator("#tiles").count(), 0, "figures are not shown");
  await judge(page, "login", width, colorScheme);
  await logIn(page, "wrong");
  await says(page, "#login-answer", "not valid");
  await judge(page, "login-refused", width, colorScheme);
  await logIn(page, "secret");
  await page.waitForSelector("#live.is-live");
  assert.equal(await page.textContent("#caller"), "ops");
  const [cookie] = await context.cookies();
  assert.deepEqual([cookie.httpOnly, cookie.sameSite, cookie.path], [true, "Strict", "/"]);
  assert.equal(await page.evaluate(() => document.cookie), "", "programs see the cookie");

  await page.focus('nav a[href="#/configuration"]');
  await page.keyboard.press("Enter");
  await says(page, "#config-options", "policies.burst.quota");
  await says(page, "#config-changes", "Nothing");
  assert.ok(!(await page.textContent("#config-options")).match(/[0-9a-f]{64}/), "a digest is shown");
  // Only what the file sets, until one wants to see all of it; groups fold.
  assert.ok(!(await page.textContent("#config-options")).includes("default"));
  await judge(page, "configuration", width, colorScheme);
  await page.uncheck("#config-set");
  await says(page, "#config-options", "default");
  const isOpen = (value) => page.waitForFunction((wanted) => [...document.querySelectorAll("#config-options details")].find((each) => each.textContent.startsWith("http")).open === wanted, value);
  await isOpen(width > 640);
  await page.click("#config-options summary:has-text('http')");
  await isOpen(width <= 640);
  await page.check("#config-set");
  await page.focus("#config-filter");
  await page.keyboard.type("burst quota");
  await page.waitForFunction(() => document.querySelectorAll("#config-options tbody tr").length === 1);
  assert.match(await page.textContent("#config-options tbody"), /policies\.burst\.quota5.*tidegate\.yaml:\d+:\d+/);

  writeFileSync(file, config.replace("quota: 5,", "quota: 6,") + "workers: 3\n");
  await page.focus("#config-look");
  await page.keyboard.press("Enter");
  await says(page, "#config-changes", "policies.burst.quota56on reload");
  await says(page, "#config-changes", "on restart");
  await judge(page, "configuration-changes", width, colorScheme);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.id), "config-reload");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#question[open]");
  await judge(page, "question", width, colorScheme);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await says(page, "#config-changes", "Reloaded: 1 change applied.");
  await says(page, "#config-options tbody", "policies.burst.quota6");

  writeFileSync(file, config.replace("quota: 5,", "quota: none,"));
  await page.click("#config-look");
  await says(page, "#config-changes", "tidegate.yaml:");
  await judge(page, "configuration-faults", width, colorScheme);
  const reload = async () => {
    await page.click("#config-reload");
    await page.click("#question-yes");
  };
  await reload();
  await says(page, "#config-changes", "not applied");
  await says(page, "#band", "The last reload was refused");
  writeFileSync(file, config);
  await reload();
  await says(page, "#config-options tbody", "policies.burst.quota5");

  // To log out in one window logs out in the other as well.
  const [other, otherFaults] = await open(context);
  await other.waitForSelector("#live.is-live");
  await page.focus("#logout");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#login-form");
  await other.waitForSelector("#login-form");
  assert.deepEqual(await context.cookies(), []);

  await logIn(page, "reader");
  await page.waitForSelector("#live.is-live");
  assert.equal(await page.textContent("#caller"), "look (read-only)");
  assert.ok(await page.isDisabled("#config-reload"));
  assert.deepEqual([...faults, ...otherFaults], []);
  await context.close();
}

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
try {
  for (const [width, scheme] of [[1600, "light"], [1600, "dark"], [400, "light"], [400, "dark"]]) {
    await visit(browser, width, scheme);
  }
} finally {
  writeFileSync(file, config);
  await browser.close();
}
