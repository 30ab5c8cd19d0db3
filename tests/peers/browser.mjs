// SPDX-License-Identifier: Apache-2.0
// Opens the console in Chromium, at both widths and in both themes: node browser.mjs GATEWAY ADMIN [SCREENSHOTS]
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { request } from "node:http";
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
  page.on("dialog", (dialog) => {
    faults.push(`a dialog: ${dialog.message()}`); // only markup of others would open one
    return dialog.dismiss();
  });
  await page.route((url) => url.origin !== new URL(admin).origin && url.protocol !== "data:", (route) => {
    faults.push(`asks for ${route.request().url()}`);
    return route.abort();
  });
  return { page, faults };
}

/** Nothing that axe-core knows is wrong, and nothing stands off the side. */
async function judge(page, what) {
  const width = page.viewportSize().width;
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= width, `${what} is ${wide} wide at ${width}`);
  await page.evaluate(axe);
  const found = await page.evaluate(async () => (await axe.run(document)).violations);
  assert.deepEqual(found.map(({ id, nodes }) => [id, nodes[0].html]), [], `${what} at ${width}`);
}

/** Whatever can be pressed or filled in is within the screen once one scrolls down to it, and nothing lies over it. */
async function reach(page, what) {
  const off = await page.evaluate(() => [...document.querySelectorAll("a, button, input, select, textarea, summary")].filter((each) => each.checkVisibility() && !each.classList.contains("skip")).filter((each) => {
    each.scrollIntoView({ block: "center", inline: "center" });
    const box = each.getBoundingClientRect();
    const top = document.elementFromPoint(box.left + Math.min(box.width, innerWidth) / 2, box.top + box.height / 2);
    return box.width === 0 || box.left < 0 || box.right > innerWidth + 0.5 || !top || !(each.contains(top) || top.contains(each));
  }).map((each) => each.outerHTML.slice(0, 200)));
  assert.deepEqual(off, [], `${what}: out of reach at ${page.viewportSize().width}`);
}

/** The history of the gateway, once it has so many samples with requests in them. */
async function waitForHistory(count) {
  for (;;) {
    const told = await (await fetch(`${admin}/api/v1/history`)).json();
    if ((told.responses["2xx"] || []).filter((each) => each > 0).length >= count) {
      return told;
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

async function visit(browser, width, colorScheme) {
  await waitForHistory(3);
  const { page, faults } = await openPage(browser, { viewport: { width, height: 1000 }, colorScheme });
  const requests = [];
  page.on("console", (message) => message.type() === "error" && faults.push(message.text()));
  page.on("request", (each) => requests.push(each.url()));
  const opened = Date.now();
  const answer = await page.goto(`${admin}/`);
  assert.ok((await answer.body()).length < 250_000, "the page is too heavy");
  // What is shown first came with the page: charts have what was before it was opened.
  assert.equal(await page.locator("#tiles dt").count(), 4);
  assert.deepEqual(requests.filter((url) => url.startsWith("http") && !url.endsWith("/api/v1/events")), [`${admin}/`]);
  const chart = await page.$eval("#chart-requests svg", ({ dataset }) => ({ first: Number(dataset.first), points: Number(dataset.points) }));
  assert.ok(chart.points >= 3 && chart.first < opened - 10000, `the chart begins at ${chart.first} with ${chart.points} points, the page at ${opened}`);
  await page.waitForSelector("#live.is-live");
  await page.waitForFunction(() => document.querySelectorAll("#routes tbody tr td").length > 1);
  // No series of zeros is in a legend, and axes have a unit.
  assert.ok(!/1xx|3xx/.test(await page.textContent("#chart-requests .legend")));
  assert.match(await page.textContent("#chart-requests svg"), /\d\/s/);
  assert.match(await page.textContent("#chart-latency svg"), /\d ms/);
  for (const [name, seconds] of [["5 min", 300], ["1 h", 3600], ["15 min", 900]]) {
    const asked = page.waitForResponse((response) => response.url() === `${admin}/api/v1/history?seconds=${seconds}`);
    await page.click(`#ranges button:text-is("${name}")`);
    await asked;
    await page.waitForSelector(`#ranges button[data-seconds="${seconds}"][aria-pressed=true]`);
  }
  assert.match(await page.textContent("#about"), /Version.*Instance.*Up.*File.*tidegate\.yaml/);

  // By the keyboard alone: to the first link of the views and on.
  await page.focus(".skip");
  await page.keyboard.press("Tab");
  for (const view of views) {
    assert.equal(await page.evaluate(() => document.activeElement.hash), `#/${view}`, "not reached by Tab");
    await page.keyboard.press("Enter");
    await page.waitForSelector(`#view-${view}`, { state: "visible" });
    if (view === "policies") {
      await page.waitForFunction(() => document.querySelector("#policies")?.textContent.includes('RateLimit-Policy: "constructor";q=20;w=60'));
      await page.waitForFunction(() => document.querySelector("#clients")?.textContent.includes("client-ip 127.0.0.1"));
      await page.waitForFunction(() => document.querySelectorAll("#policies svg").length > 0);
      // What never refused has no chart.
      assert.ok(await page.isHidden('#policies [data-part="idle"] figure'));
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
      await page.waitForFunction(() => document.querySelector("#config-options")?.textContent.includes("policies.constructor.quota"));
      await page.waitForFunction(() => document.querySelector("#config-changes")?.textContent.includes("Nothing"));
    }
    await judge(page, `${view}, ${colorScheme}`);
    if (width === 400) {
      await reach(page, view);
    }
    if (screenshots) {
      await page.screenshot({ path: `${screenshots}/console-${view}-${width}-${colorScheme}.png`, fullPage: true });
    }
    await page.focus(`nav a[href="#/${view}"]`);
    await page.keyboard.press("Tab");
  }
  await page.click("#theme");
  const theme = await page.evaluate(() => document.documentElement.dataset.theme);
  assert.notEqual(theme, colorScheme);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.equal(await page.locator("main img").count(), 0);
  assert.deepEqual(faults, []);
  await page.close();
}

/** Answers the question of the page with yes. */
async function agree(page, words) {
  await page.waitForSelector("#question[open]");
  assert.match((await page.textContent("#question")).replace(/\s+/g, " "), words);
  assert.equal(await page.evaluate(() => document.activeElement.id), "question-no");
  await page.click("#question-yes");
  await page.waitForSelector("#question", { state: "hidden" });
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
  await page.goto(`${admin}/#/idempotency`);
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
  await agree(page, /Forget it: .*runs as if it were new/);
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
const hostileKey = "lost-4 <img src=x onerror=window.hacked=true>";
const hostilePath = "/lost/hostile<img/src=x/onerror=window.hacked=true>";

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
  await page.goto(`${admin}/#/directory`);
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
  await agree(page, /Deactivate user11/);
  await says("#directory-detail pre", '"active": false');
  await says("#directory-list", "no");
  await page.click("#directory-detail button:text('Delete')");
  await agree(page, /Delete user11.*cannot be undone/);
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
  await opened.page.goto(`${admin}/#/${view}`);
  return opened;
}

/** Whatever was opened in a view is readable and in reach at both widths and in both themes. */
async function inspect(page, what) {
  for (const width of [1600, 400]) {
    await page.setViewportSize({ width, height: 1000 });
    for (let theme = 0; theme < 2; ++theme) {
      await page.click("#theme");
      await judge(page, what);
    }
    await reach(page, what);
  }
}

/** A client is looked up by its values, and one is reset and raised from its row, by the keyboard. */
async function change(browser) {
  const use = () => fetch(`${gateway}/keyed`, { headers: { "X-Api-Key": "swordfish" } });
  while ((await use()).status === 200) {
    // until its quota is spent
  }
  // A client that was not seen for some seconds is not among the busiest; one that is refused changes nothing.
  let isSpent = true;
  const trying = (async () => {
    while (isSpent) {
      await use();
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
  })();
  const { page, faults } = await open(browser, "policies");
  await page.selectOption("#partition-policy", "keyed");
  await page.fill("#partition-values input", "swordfish");
  await page.click("#partition-form button");
  await page.waitForFunction(() => document.querySelector("#partition-answer")?.textContent.includes("0 of 5 left"));
  assert.ok(!(await page.textContent("#partition-answer")).includes("swordfish"));

  // One row a client, with both of its policies in it.
  const client = page.locator("#clients article", { hasText: "header:x-api-key" });
  await client.waitFor();
  assert.deepEqual(await client.locator(".name").allTextContents(), ["keyed", "watched"]);
  const row = client.locator(".policy", { hasText: "keyed" });
  assert.match(await row.textContent(), /0 of 5 left.*resets in (1 h|\d+ min)/);
  await row.locator("button", { hasText: "Reset" }).focus();
  // The row is drawn again every other second, and the button keeps the focus.
  await page.waitForResponse((response) => response.url().includes("/api/v1/partitions?"));
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Reset");
  isSpent = false;
  await trying;
  await page.keyboard.press("Enter");
  await agree(page, /Reset keyed\?.*the whole quota is there again/);
  await page.waitForFunction(() => document.querySelector("#partition-answer")?.textContent.includes("It was reset."));
  await page.waitForFunction(() => document.querySelector("#partition-answer")?.textContent.includes("5 of 5 left"));
  assert.equal((await use()).status, 200);

  await row.locator("button", { hasText: "Raise" }).focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.activeElement.name === "quota");
  await page.fill("#raise-form input[name=quota]", "77");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector("#overrides tbody")?.textContent.includes("77"));
  assert.match((await use()).headers.get("RateLimit-Policy"), /"keyed";q=77/);
  await inspect(page, "a client");
  await page.locator("#overrides button", { hasText: "Take back" }).click();
  await page.waitForFunction(() => document.querySelector("#overrides tbody")?.textContent.includes("No client has one."));
  assert.match((await use()).headers.get("RateLimit-Policy"), /"keyed";q=5/);
  // What a policy refused has a chart of its own, and one that only watches says what it would have done.
  await page.waitForFunction(() => document.querySelectorAll('#policies [data-part="keyed"] svg').length > 0);
  await page.waitForFunction(() => /[0-9.]+\s% of [0-9,]+ requests would have been refused/.test(document.querySelector("#policies").textContent));
  assert.deepEqual(faults, []);
  await page.close();
}

/** A payment whose answer is lost, by a client with a token. */
const pay = (key, path = "/lost") => new Promise((resolve, reject) => {
  const sent = request(`${gateway}/`, { path, method: "POST", headers: { Authorization: "Bearer payer", "Idempotency-Key": `"${key}"` } }, (answer) => answer.resume().on("end", () => resolve(answer.statusCode)));
  sent.on("error", reject).end("1");
});

/** An API that goes away without an answer leaves outcomes that an operator settles, behind a row each. */
async function settle(browser) {
  const keys = ["lost-1", "lost-2", "lost-3", hostileKey, "lost-5"];
  for (const key of keys) {
    assert.equal(await pay(key, key === "lost-5" ? hostilePath : "/lost"), 502);
  }
  const { page, faults } = await open(browser, "idempotency");
  const left = (count) => page.waitForFunction((rows) => document.querySelectorAll("#unknown li").length === rows, count);
  await left(5);
  assert.match(await page.textContent("#unknown li:last-child summary"), /POST \/lost.*lost.*without an answer/);
  assert.match(await page.textContent("#unknown li:last-child .age"), /^(just now|\d+ (s|min) ago)$/);
  assert.equal(await page.textContent("#unknown li:last-child .who"), markup, "the name of the token");
  assert.equal(await page.locator("#unknown button").locator("visible=true").count(), 0, "what can be done stands behind a row");

  await page.fill("#unknown-form input", "onerror");
  await left(5); // the name of the client has it
  await page.fill("#unknown-form input", "hostile");
  await left(1);
  await page.fill("#unknown-form input", "");
  await page.selectOption("#unknown-form select", "lost");
  await left(5);

  // By the keyboard: a row is opened, and says what each choice means.
  await page.focus("#unknown li:first-child summary");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#unknown li:first-child .choices", { state: "visible" });
  assert.match(await page.textContent("#unknown li:first-child .choices"), /happens twice/);
  assert.match(await page.textContent("#unknown li:first-child .opened"), /First seen\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+/);
  assert.equal(await page.locator("#unknown img").count(), 0);
  await inspect(page, "unknown outcomes");
  // It is still open when the list was read again.
  await page.waitForResponse((response) => response.url().includes("/api/v1/idempotency/unknown"));
  assert.ok(await page.isVisible("#unknown li:first-child .choices"));
  const choose = async (label, words, rest) => {
    await page.locator("#unknown button", { hasText: label }).locator("visible=true").first().focus();
    await page.keyboard.press("Enter");
    await agree(page, words);
    await page.waitForFunction((said) => document.querySelector("#unknown-answer")?.textContent === `${said}: done.`, label);
    await left(rest);
  };
  await choose("Forget it", /Forget it: POST .*a retry with it runs as if it were new/, 4);
  await page.click("#unknown li:first-child summary");
  // Who says no changes nothing.
  await page.locator("#unknown button.danger", { hasText: "It was not carried out" }).locator("visible=true").click();
  await page.waitForSelector("#question[open]");
  await page.keyboard.press("Escape");
  await page.waitForSelector("#question", { state: "hidden" });
  await left(4);
  await choose("It was not carried out", /a payment is paid twice/, 3);

  // Several at once.
  for (const each of [1, 2]) {
    await page.check(`#unknown li:nth-child(${each}) input`);
  }
  await page.waitForFunction(() => document.querySelector("#unknown-selection")?.textContent.startsWith("2 selected"));
  await inspect(page, "a selection");
  await page.click("#unknown-selection button:text-is('It was carried out')");
  await agree(page, /It was carried out: 2 requests/);
  await page.waitForFunction(() => document.querySelector("#unknown-answer")?.textContent === "It was carried out: done for 2.");
  await left(1);
  assert.ok(await page.isHidden("#unknown-selection"));
  await page.click("#unknown li summary");
  await choose("It was carried out", /It does not run again/, 0);
  await page.waitForFunction(() => document.querySelector("#unknown-note").textContent.startsWith("No request is in doubt"));
  const statuses = [];
  for (const key of keys) {
    statuses.push(await pay(key, key === "lost-5" ? hostilePath : "/lost"));
  }
  assert.deepEqual(statuses.sort(), [409, 409, 409, 502, 502]); // three are known to be carried out, the others run again
  assert.equal(await page.evaluate(() => window.hacked), undefined);
  assert.deepEqual(faults, []);
  await page.close();
}

/** The band names a dead server, payments in doubt and a policy that refuses; each leads to where it is seen. */
async function warn(browser) {
  for (let i = 0; i < 40; ++i) {
    await fetch(`${gateway}/keyed`, { headers: { "X-Api-Key": "greedy" } });
    await fetch(`${gateway}/team`, { headers: { "X-Team": markup } });
  }
  const isDown = async () => (await (await fetch(`${admin}/metrics`)).text()).split("\n").some((line) => /^tidegate_upstream_down_since_timestamp_seconds\{upstream="pair".* [1-9]/.test(line));
  while (!await isDown()) {
    assert.equal((await fetch(`${gateway}/pair`)).status, 200);
  }
  const { page, faults } = await open(browser, "overview");
  const link = (words) => page.locator("#band a", { hasText: words });
  await link(/^\d of 3 servers? down since \d\d:\d\d \S+.*pair: http:\/\/127\.0\.0\.1/).waitFor();
  await link(/^2 payments in doubt/).waitFor();
  await link(/^Policy keyed refuses \d\d\s%/).waitFor();
  await link(/^Policy <img src=x .* refuses \d\d\s%/).waitFor();
  await inspect(page, "the band");
  for (const [words, view, part] of [[/servers? down/, "overview", "upstreams"], [/payments in doubt/, "idempotency", "unknown"], [/Policy keyed/, "policies", "keyed"], [/Policy <img/, "policies", markup]]) {
    await link(words).focus();
    await page.keyboard.press("Enter");
    await page.waitForSelector(`#view-${view}`, { state: "visible" });
    await page.waitForFunction((name) => document.activeElement.dataset.part === name, part);
    assert.ok(await page.evaluate(() => document.activeElement.getBoundingClientRect().top < innerHeight));
  }
  assert.match(await page.textContent("#clients"), /header:x-team <img src=x/);
  // A key is looked up by what a client made up.
  await page.goto(`${admin}/#/idempotency`);
  await page.fill("textarea[name=scope]", markup);
  await page.fill("input[name=key]", hostileKey);
  await page.click("#key-form button");
  await page.waitForFunction((name) => document.querySelector("#key-answer dl")?.textContent.includes(`Client${name}`), markup);
  await page.goto(`${admin}/#/overview`);
  await page.waitForFunction((name) => document.querySelector("#chart-refusals .legend").textContent.includes(name), markup);
  await page.waitForFunction(() => /pair.*down since/.test(document.querySelector("#upstreams").textContent));
  assert.equal(await page.locator("main img").count(), 0);
  assert.equal(await page.evaluate(() => window.hacked), undefined);
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
  assert.equal(await page.textContent("#try-many"), "Send 6 times");
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
  assert.match(await page.textContent("#try-beside"), /Body, \d+ bytes/);
  await inspect(page, "answers side by side");
  await page.fill("#try-form textarea[name=fields]", "no field");
  await page.click("#try-form button");
  await page.waitForSelector("#try-state .error");
  assert.deepEqual(faults, []);
  await page.close();
}

/** Numbers and spans of time as people read them, and times with a zone. */
async function format(browser) {
  const { page, faults } = await openPage(browser, { timezoneId: "Asia/Kolkata" });
  await page.goto(`${admin}/`);
  const made = (name, ...values) => page.evaluate(([what, given]) => globalThis.consoleFormat[what](...given), [name, values]);
  for (const [seconds, words] of [[0, "< 1 s"], [1, "1 s"], [59, "59 s"], [60, "1 min"], [90, "90 s"], [3600, "1 h"], [3599, "1 h"], [80000, "22 h"], [85779, "1 day"], [86400, "1 day"], [200000, "2 days"], [undefined, "–"]]) {
    assert.equal(await made("span", seconds), words, `${seconds} s`);
  }
  assert.equal(await made("moment", Date.UTC(2026, 10, 18, 14, 46, 2)), "2026-11-18 20:16:02 GMT+5:30");
  assert.match(await made("clock", Date.UTC(2026, 0, 2, 14, 46, 2)), /^2026-01-02 20:16 GMT\+5:30$/);
  assert.equal(await made("ago", 0, 180000), "3 min ago");
  assert.equal(await made("percent", 56, 100), "56\u00a0%");
  await page.goto(`${admin}/#/policies/%`); // no such part, and not an error
  await page.waitForSelector("#view-policies", { state: "visible" });
  assert.deepEqual(faults, []);
  await page.close();
}

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
let stop = async () => 0;
try {
  await format(browser);
  await forget(browser); // before the quota is spent
  await change(browser);
  await settle(browser);
  await warn(browser);
  await send(browser);
  await fillDirectory();
  stop = load(780);
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
