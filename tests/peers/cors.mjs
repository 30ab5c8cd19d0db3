// SPDX-License-Identifier: Apache-2.0
// What pages in Chromium read of a gateway of another origin: node cors.mjs GATEWAY PAGE FOREIGN_PAGE FOLDER
// PAGE is the origin of pages that may read, FOREIGN_PAGE one of pages that may not; their servers are made here, with
// cert.pem and key.pem of FOLDER where they are of https. All are of one site, or Chromium would keep cookies back.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { chromium } from "playwright-core";

const [gateway, pageOrigin, foreignOrigin, folder] = process.argv.slice(2);

/** Serves an empty page at that origin. */
async function servePage(origin) {
  const answer = (request, response) => response.setHeader("Content-Type", "text/html").end("<!doctype html><title>page</title>");
  const server = origin.startsWith("https:")
    ? https.createServer({ cert: readFileSync(`${folder}/cert.pem`), key: readFileSync(`${folder}/key.pem`) }, answer)
    : http.createServer(answer);
  await new Promise((resolve) => server.listen(new URL(origin).port, "127.0.0.1", resolve));
  return server;
}

/** In the page: one request, and what it may read of the answer. */
async function ask(page, path, options = {}) {
  return page.evaluate(async ([url, how]) => {
    try {
      const response = await fetch(url, how);
      return { status: response.status, headers: Object.fromEntries(response.headers), body: await response.text() };
    } catch (error) {
      return { refused: error.name };
    }
  }, [gateway + path, options]);
}

const refused = { refused: "TypeError" };
const readable = (headers, ...names) => names.forEach((name) => assert.ok(name in headers, `the page does not see ${name}: ${Object.keys(headers)}`));

/** A quota that is spent: its fields, and the problem of the refusal. */
async function readLimits(page, path, credentials) {
  const how = { credentials, headers: { "X-Api-Key": `${path} ${credentials}` } }; // which takes a preflight
  for (const left of [1, 0]) {
    const answer = await ask(page, path, how);
    assert.equal(answer.status, 200, `${path} ${credentials}`);
    readable(answer.headers, "ratelimit", "ratelimit-policy", "date");
    assert.match(answer.headers.ratelimit, new RegExp(`r=${left}(;|$)`), "a preflight spends nothing");
  }
  const answer = await ask(page, path, how);
  assert.equal(answer.status, 429, `${path} ${credentials}`);
  readable(answer.headers, "ratelimit", "retry-after");
  assert.ok(Number(answer.headers["retry-after"]) > 0);
  assert.equal(answer.headers["content-type"], "application/problem+json");
  assert.match(JSON.parse(answer.body).type, /#quota-exceeded$/);
}

/** A request with a key and its replay. */
async function replay(page, credentials) {
  const how = {
    method: "POST",
    credentials,
    headers: { "Content-Type": "application/json", "Idempotency-Key": `"${credentials}-1"`, Prefer: "wait=1" },
    body: "{}",
  };
  const first = await ask(page, "/pay", how);
  assert.equal(first.status, 200);
  assert.ok(!("idempotent-replayed" in first.headers));
  const again = await ask(page, "/pay", how);
  assert.equal(again.status, 200);
  assert.equal(again.headers["idempotent-replayed"], "true");
  assert.equal(again.body, first.body);
  const without = await ask(page, "/pay", { ...how, headers: { "Content-Type": "application/json" } });
  assert.equal(without.status, 400);
  readable(without.headers, "link");
  assert.match(JSON.parse(without.body).type, /#key-missing$/);
}

async function visit(browser) {
  const context = await browser.newContext({ ignoreHTTPSErrors: true });
  const page = await context.newPage();
  await page.goto(`${pageOrigin}/`);

  await readLimits(page, "/any", "omit");
  await readLimits(page, "/list", "omit");
  await readLimits(page, "/list", "include");
  await replay(page, "omit");
  await replay(page, "include");

  // The credentials of the browser go along where they are asked for, and allowed.
  await context.addCookies([{ name: "session", value: "mine", url: gateway }]);
  const { body } = await ask(page, "/whoami", { credentials: "include" });
  assert.match(body, /session=mine/);
  assert.equal(/\["host"/.test(body), gateway.startsWith("https:"), "HTTP/2 has names in lower case");
  assert.doesNotMatch((await ask(page, "/whoami", { credentials: "omit" })).body, /session=mine/);
  assert.deepEqual(await ask(page, "/any", { credentials: "include" }), refused, "credentials with origins: \"*\"");

  // A token that is missing, and one that is not: the preflight has none.
  const without = await ask(page, "/guarded");
  assert.equal(without.status, 401);
  readable(without.headers, "www-authenticate");
  assert.equal((await ask(page, "/guarded", { headers: { Authorization: "Bearer bench" } })).status, 200);

  // An upstream that is away, and one that says what it likes of origins.
  assert.equal((await ask(page, "/lost")).status, 502);
  assert.equal((await ask(page, "/upstream", { method: "DELETE" })).body, "ok\n");

  // Preflights of what is not allowed, and routes without the rule.
  assert.deepEqual(await ask(page, "/list", { method: "PUT" }), refused, "a method");
  assert.deepEqual(await ask(page, "/list", { headers: { "X-Other": "1" } }), refused, "a header");
  assert.deepEqual(await ask(page, "/none"), refused, "no rule");
  assert.deepEqual(await ask(page, "/none", { method: "DELETE" }), refused, "no rule, with a preflight");
  assert.deepEqual(await ask(page, "/not/there"), refused, "no route");

  const foreign = await context.newPage();
  await foreign.goto(`${foreignOrigin}/`);
  for (const path of ["/list", "/whoami", "/guarded", "/lost", "/upstream"]) {
    assert.deepEqual(await ask(foreign, path), refused, `${path} of a foreign page`);
    assert.deepEqual(await ask(foreign, path, { method: "DELETE", credentials: "include" }), refused, `${path} of a foreign page`);
  }
  await readLimits(foreign, "/any", "same-origin");
  await context.close();
}

const servers = [await servePage(pageOrigin), await servePage(foreignOrigin)];
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
try {
  await visit(browser);
} finally {
  await browser.close();
  servers.forEach((server) => server.close());
}
