// SPDX-License-Identifier: Apache-2.0
// Opens the console in Chromium, at both widths and in both themes: node browser.mjs GATEWAY ADMIN [SCREENSHOTS]
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [gateway, admin, screenshots] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const views = ["overview", "policies", "idempotency", "directory", "try", "configuration"];
const bearer = { Authorization: "Bearer bench" };

/** Clients that go on until they are stopped, and no longer than `secs`: a few hundred requests a second. Some are refused. */
function load(secs) {
  const until = Date.now() + secs * 1000;
  const client = async (path, pause) => {
    let count = 0;
    for (; running && Date.now() < until; ++count) {
      await (await fetch(`${gateway}${path}`, { headers: bearer })).arrayBuffer();
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
    return count;
  };
  let running = true;
  const clients = [...Array(6).fill("/echo/1"), "/people/v2/Users?count=10", "/scim/v2/Users?count=1"].map((path, i) => client(path, 10 + i));
  return async () => {
    running = false;
    return (await Promise.all(clients)).reduce((sum, count) => sum + count, 0);
  };
}

/** A page for which errors of its programs are faults, and so is what it asks of anybody else. */
async function openPage(browser, options) {
  const page = await browser.newPage(options);
  const faults = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("dialog", (dialog) => dialog.accept());
  await page.route((url) => url.origin !== new URL(admin).origin && url.protocol !== "data:", (route) => {
    faults.push(`asks for ${route.request().url()}`);
    return route.abort();
  });
  return { page, faults };
}

async function visit(browser, width, colorScheme) {
  const { page, faults } = await openPage(browser, { viewport: { width, height: 1000 }, colorScheme });
  const requests = [];
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("request", (request) => requests.push(request.url()));
  const answer = await page.goto(`${admin}/`);
  assert.ok((await answer.body()).length < 400_000, "the page is too heavy");
  // What is shown first came with the page.
  assert.equal(await page.locator("#tiles dt").count(), 10);
  assert.deepEqual(requests.filter((url) => url.startsWith("http") && !url.endsWith("/api/v1/events")), [`${admin}/`]);
  await page.waitForSelector("#live.is-live");
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
    if (view === "directory") {
      await page.waitForSelector("#directory-list tbody button");
      await page.click("#directory-list tbody button");
      await page.waitForSelector("#directory-detail pre");
    }
    if (view === "overview") {
      await page.waitForFunction(() => document.querySelector("#upstreams tbody")?.textContent.includes("lost"));
      await page.waitForFunction(() => /quota.*memory.*ok/.test(document.querySelector("#stores tbody")?.textContent));
    }
    if (view === "try") {
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

/** A key is looked up and forgotten by its scope. */
async function forget(browser) {
  const sent = await fetch(`${gateway}/scim/v2/Users`, {
    method: "POST",
    headers: { ...bearer, "Content-Type": "application/scim+json", "Idempotency-Key": '"k1"' },
    body: JSON.stringify({ schemas: ["urn:ietf:params:scim:schemas:core:2.0:User"], userName: "ada" }),
  });
  assert.equal(sent.status, 201);
  const { page, faults } = await openPage(browser);
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

const markup = '<img src=x onerror="window.hacked = true">';

/** Users and groups, one of which has a name that must not become markup. */
async function fillDirectory() {
  const make = async (endpoint, resource) => {
    const answer = await fetch(`${gateway}/people/v2/${endpoint}`, {
      method: "POST", headers: { ...bearer, "Content-Type": "application/scim+json" }, body: JSON.stringify(resource),
    });
    assert.equal(answer.status, 201);
    return answer.json();
  };
  const user = (userName, more) => make("Users", { schemas: ["urn:ietf:params:scim:schemas:core:2.0:User"], userName, active: true, ...more });
  const first = await user(markup, { displayName: markup, emails: [{ value: `${markup}@example.com`, primary: true }] });
  for (let i = 10; i < 69; ++i) {
    await user(`user${i}`, { name: { givenName: "User", familyName: String(i) }, emails: [{ value: `user${i}@example.com` }] });
  }
  await make("Groups", { schemas: ["urn:ietf:params:scim:schemas:core:2.0:Group"], displayName: markup, members: [{ value: first.id }] });
}

/** The directory is searched, sorted, paged and changed, with the keyboard where it matters. */
async function browseDirectory(browser) {
  const { page, faults } = await openPage(browser, { viewport: { width: 1600, height: 1000 } });
  await page.goto(`${admin}/#directory`);
  const says = (selector, text) => page.waitForFunction(([where, what]) => document.querySelector(where)?.textContent.includes(what), [selector, text]);
  const names = () => page.locator("#directory-list tbody button").allTextContents();
  await says("#directory-total", "1–25 of 61");
  assert.deepEqual(await page.locator("#directory-form select[name=route] option").allTextContents(), ["/scim/v2/**", "people"]);

  await page.click("#directory-list th button");
  await page.waitForSelector("#directory-list th[aria-sort=ascending]");
  assert.equal((await names())[0], markup);
  assert.equal((await names())[1], "ada");
  await page.keyboard.press("Enter"); // the heading still has the focus
  await page.waitForSelector("#directory-list th[aria-sort=descending]");
  assert.equal((await names())[0], "user68");

  await page.click("#directory-next");
  await says("#directory-total", "26–50 of 61");
  assert.equal((await names())[0], "user43");
  await page.click("#directory-next");
  await says("#directory-total", "51–61 of 61");
  assert.equal((await names()).at(-1), markup);
  assert.ok(await page.isDisabled("#directory-next"));
  await page.waitForFunction(() => document.activeElement.id === "directory-previous");

  // What has a name with markup in it is text, in the list and beside it.
  await page.focus("#directory-list tbody tr:last-child button");
  await page.keyboard.press("Enter");
  await says("#directory-detail pre", '"userName": "<img src=x onerror=\\"window.hacked = true\\">"');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), markup);
  assert.equal(await page.locator("#view-directory img").count(), 0);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  await page.click("#directory-detail button:text('Close')");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), markup);

  await page.click("#directory-previous");
  await says("#directory-total", "26–50 of 61");
  await page.click("#directory-previous");
  await says("#directory-total", "1–25 of 61");
  assert.ok(await page.isDisabled("#directory-previous"));

  await page.fill("#directory-form input", 'userName xx "a"');
  await page.keyboard.press("Enter");
  await says("#directory-fault", "The filter cannot be read: ");
  // What stands in the box and was not searched for does not disturb the pages.
  await page.click("#directory-next");
  await says("#directory-total", "26–50 of 61");
  assert.equal(await page.textContent("#directory-fault"), "");
  await page.fill("#directory-form input", 'userName sw "user1" and active eq true');
  await page.keyboard.press("Enter");
  await says("#directory-total", "1–10 of 10");
  assert.equal(await page.evaluate(() => document.activeElement.name), "filter");
  await page.fill("#directory-form input", 'userName eq "missing"');
  await page.keyboard.press("Enter");
  await says("#directory-list", "Nothing fits the filter.");

  await page.fill("#directory-form input", 'userName eq "user11"');
  await page.keyboard.press("Enter");
  await says("#directory-total", "1–1 of 1");
  await page.click("#directory-list tbody button");
  await page.click("#directory-detail button:text('Deactivate')");
  await says("#directory-detail pre", '"active": false');
  await says("#directory-list", "no");
  await page.click("#directory-detail button:text('Delete')");
  await says("#directory-list", "Nothing fits the filter.");
  assert.equal(await page.textContent("#directory-detail"), "");

  await page.selectOption("#directory-form select[name=type]", { label: "Groups" });
  await says("#directory-total", "1–1 of 1");
  await page.click("#directory-list tbody button");
  await says("#directory-detail pre", '"members"');
  await page.selectOption("#directory-form select[name=route]", "people");
  await says("#directory-total", "1–1 of 1");
  assert.equal(await page.locator("#view-directory img").count(), 0);
  assert.deepEqual(faults, []);
  await page.close();
}

async function open(browser, view) {
  const opened = await openPage(browser);
  await opened.page.goto(`${admin}/#${view}`);
  return opened;
}

/** Whatever was opened in a view is readable at both widths and in both themes. */
async function inspect(page, what) {
  await page.evaluate(axe);
  for (const width of [400, 1600]) {
    await page.setViewportSize({ width, height: 1000 });
    for (let theme = 0; theme < 2; ++theme) {
      await page.click("#theme");
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${what} is ${wide} wide at ${width}`);
      const found = await page.evaluate(async () => (await axe.run(document)).violations);
      const serious = found.filter(({ impact }) => impact === "serious" || impact === "critical");
      assert.deepEqual(serious.map(({ id, nodes }) => [id, nodes[0].html]), [], `${what} at ${width}`);
    }
  }
}

/** A partition is looked up by its values, and one is reset and raised from its row, by the keyboard. */
async function change(browser) {
  const use = () => fetch(`${gateway}/keyed`, { headers: { "X-Api-Key": "swordfish" } });
  while ((await use()).status === 200) {
    // until its quota is spent
  }
  const { page, faults } = await open(browser, "policies");
  await page.selectOption("#partition-policy", "keyed");
  await page.fill("#partition-values input", "swordfish");
  await page.click("#partition-form button");
  await page.waitForFunction(() => document.querySelector("#partition-answer")?.textContent.includes("0 of 5"));
  assert.ok(!(await page.textContent("#partition-answer")).includes("swordfish"));

  const row = page.locator("#partitions tr", { hasText: "keyed" });
  await row.locator("button", { hasText: "Reset" }).focus();
  // The row is drawn again every other second, and the button keeps the focus.
  const heard = page.waitForResponse((response) => response.url().includes("/api/v1/partitions?"));
  await heard;
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Reset");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("#partition-answer")?.textContent.includes("It was reset."));
  await page.waitForFunction(() => document.querySelector("#partition-answer")?.textContent.includes("5 of 5"));
  assert.equal((await use()).status, 200);

  await row.locator("button", { hasText: "Raise" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.activeElement.name === "quota");
  await page.fill("#raise-form input[name=quota]", "77");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("#overrides tbody")?.textContent.includes("77"));
  assert.match((await use()).headers.get("RateLimit-Policy"), /"keyed";q=77/);
  await inspect(page, "a partition");
  await page.locator("#overrides button", { hasText: "Take back" }).click();
  await page.waitForFunction(() => document.querySelector("#overrides tbody")?.textContent.includes("No partition has one."));
  assert.match((await use()).headers.get("RateLimit-Policy"), /"keyed";q=5/);
  // What a policy refused has a chart of its own, and one that only watches says what it would have done.
  await page.waitForFunction(() => document.querySelectorAll("#policies canvas").length > 0);
  await page.waitForFunction(() => /would have refused [0-9.]+ % of [0-9,]+ requests/.test(document.querySelector("#policies").textContent));
  assert.deepEqual(faults, []);
  await page.close();
}

/** An API that goes away without an answer leaves outcomes that an operator settles. */
async function settle(browser) {
  const pay = (key) => fetch(`${gateway}/lost`, { method: "POST", headers: { Authorization: "Bearer t1", "Idempotency-Key": `"${key}"` }, body: "1" });
  for (const key of ["lost-1", "lost-2", "lost-3"]) {
    assert.equal((await pay(key)).status, 502);
  }
  const { page, faults } = await open(browser, "idempotency");
  const left = (count) => page.waitForFunction((rows) => document.querySelectorAll("#unknown tbody button").length === 3 * rows, count);
  await left(3);
  await inspect(page, "unknown outcomes");
  for (const [label, rest] of [["It was carried out", 2], ["It was not carried out", 1], ["Forget it", 0]]) {
    await page.locator("#unknown button", { hasText: label }).first().focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction((said) => document.querySelector("#unknown-answer")?.textContent.includes(`${said}: done.`), label);
    await left(rest);
  }
  const statuses = [];
  for (const key of ["lost-1", "lost-2", "lost-3"]) {
    statuses.push((await pay(key)).status);
  }
  assert.deepEqual(statuses.sort(), [409, 502, 502]); // one is known to be carried out, the others run again
  assert.deepEqual(faults, []);
  await page.close();
}

/** Requests are sent from the page, and what is left falls from one to the next. */
async function send(browser) {
  const { page, faults } = await open(browser, "try");
  await page.fill("#try-form input[name=path]", "/keyed");
  await page.fill("#try-form textarea[name=fields]", "X-Api-Key: tried");
  await page.locator("#try-form input[name=path]").press("Enter");
  await page.waitForFunction(() => document.querySelector("#try-answers tbody")?.textContent.includes("keyed: r 4"));
  await page.fill("#try-times", "6");
  await page.focus("#try-many");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("#try-state")?.textContent.startsWith("Sent 6"));
  const rows = await page.locator("#try-answers tbody tr").allTextContents();
  assert.equal(rows.length, 7);
  assert.deepEqual(rows.reverse().map((row) => /r (\d+)/.exec(row)[1]), ["4", "3", "2", "1", "0", "0", "0"]);
  assert.match(rows[6], /429 Too Many Requests/);
  assert.equal(await page.locator("#try-beside article.card > h3").count(), 4);
  await page.locator("#try-beside summary", { hasText: "Explained" }).first().click();
  await page.waitForFunction(() => document.querySelector("#try-beside details[open]")?.textContent.includes("keyed"));
  await inspect(page, "answers side by side");
  await page.fill("#try-form textarea[name=fields]", "no field");
  await page.click("#try-form button");
  await page.waitForSelector("#try-state .error");
  assert.deepEqual(faults, []);
  await page.close();
}

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
let stop = async () => 0;
try {
  await forget(browser); // before the quota is spent
  await change(browser);
  await settle(browser);
  await send(browser);
  await fillDirectory();
  stop = load(300);
  await browseDirectory(browser);
  for (const [width, scheme] of [[1600, "light"], [1600, "dark"], [400, "light"], [400, "dark"]]) {
    await visit(browser, width, scheme);
  }
  const requests = await stop();
  assert.ok(requests > 500, `only ${requests} requests meanwhile`);
} finally {
  await stop();
  await browser.close();
}
