// SPDX-License-Identifier: Apache-2.0
// Takes the pictures of the guide: node pictures.mjs GATEWAY ADMIN ORIGIN_PORT FOLDER
// A small shop is open for a minute: an API with clients of different appetite, payments that are retried, a directory.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { chromium } from "playwright-core";

const [gateway, admin, originPort, folder] = process.argv.slice(2);
const secs = 60;
const bearer = { Authorization: "Bearer bench" };
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Answers after a few milliseconds, longer for searches, and now and then with an error. */
function startOrigin() {
  let count = 0;
  const origin = createServer((request, response) => {
    request.resume().on("end", () => {
      const waits = request.url.startsWith("/v1/search") ? 15 + Math.random() * 60 : 1 + Math.random() * 8;
      setTimeout(() => {
        response.writeHead(++count % 400 === 0 ? 503 : 200, { "Content-Type": "application/json" });
        response.end('{"ok":true}\n');
      }, waits);
    });
  });
  return new Promise((resolve) => origin.listen(Number(originPort), "127.0.0.1", () => resolve(origin)));
}

const people = ["Ada Lovelace", "Grace Hopper", "Alan Turing", "Katherine Johnson", "Edsger Dijkstra", "Barbara Liskov", "Donald Knuth", "Radia Perlman",
  "Tony Hoare", "Frances Allen", "Ken Thompson", "Margaret Hamilton", "Dennis Ritchie", "Karen Jones", "Niklaus Wirth", "Hedy Lamarr", "John Backus",
  "Jean Bartik", "Leslie Lamport", "Shafi Goldwasser", "Robin Milner", "Adele Goldberg", "Jim Gray", "Sophie Wilson", "Vint Cerf", "Joan Clarke",
  "Claude Shannon", "Annie Easley", "Kurt Gödel", "Emmy Noether", "George Boole", "Mary Somerville"];

async function fillDirectory() {
  const make = async (endpoint, resource) => {
    const answer = await fetch(`${gateway}/scim/v2/${endpoint}`, {
      method: "POST", headers: { ...bearer, "Content-Type": "application/scim+json" }, body: JSON.stringify(resource),
    });
    assert.equal(answer.status, 201);
    return answer.json();
  };
  const ids = [];
  for (const [i, displayName] of people.entries()) {
    const [givenName, familyName] = displayName.split(" ");
    const userName = `${givenName[0]}${familyName}`.toLowerCase().replace("ö", "oe");
    const user = await make("Users", {
      schemas: ["urn:ietf:params:scim:schemas:core:2.0:User"], userName, displayName, name: { givenName, familyName }, active: i % 9 !== 7,
      emails: [{ value: `${userName}@example.com`, type: "work", primary: true }],
    });
    ids.push({ value: user.id });
  }
  await make("Groups", { schemas: ["urn:ietf:params:scim:schemas:core:2.0:Group"], displayName: "Engineering", members: ids.slice(0, 12) });
}

/** One client that asks again and again until `until`; in waves, so that charts have something to show. */
async function client(until, path, key, each, options = () => ({})) {
  for (let i = 0; Date.now() < until; ++i) {
    const { headers, ...more } = options(i);
    await (await fetch(`${gateway}${path}`, { ...more, headers: { "X-Shop": key, ...headers } })).arrayBuffer();
    await pause(each * (1.4 + Math.sin(Date.now() / 6000 + key.length)));
  }
}
const pay = (i) => ({ method: "POST", body: '{"amount":100}', headers: { ...bearer, "Idempotency-Key": `"order-${Math.floor(i / 2)}"` } });

const origin = await startOrigin();
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--hide-scrollbars"] });
try {
  await fillDirectory();
  const until = Date.now() + secs * 1000;
  const clients = [
    ...Array.from({ length: 8 }, (unused, i) => client(until, "/v1/items", `shop-${i}`, 12 + 4 * i)),
    ...Array.from({ length: 3 }, (unused, i) => client(until, "/v1/search", `crawler-number-${i}`, 8)),
    ...Array.from({ length: 3 }, (unused, i) => client(until, "/payments", `till-${i}`, 40, (n) => pay(3 * n + i))),
  ];
  const open = async (view, width, height, colorScheme) => {
    const page = await browser.newPage({ viewport: { width, height }, colorScheme });
    await page.goto(`${admin}/#${view}`);
    return { page, save: () => page.screenshot({ path: `${folder}/console-${view}-${width === 400 ? "narrow" : colorScheme}.png` }) };
  };
  await pause(5000); // the figures of the start are not typical
  const overview = await open("overview", 1600, 1000, "light");
  const narrow = await open("overview", 400, 900, "light");
  const policies = await open("policies", 1600, 1000, "dark");
  const directory = await open("directory", 1600, 900, "light");
  await directory.page.waitForSelector("#directory-list tbody button");
  await directory.page.click("#directory-list th button");
  await directory.page.waitForSelector("#directory-list th[aria-sort=ascending]");
  await directory.page.click("#directory-list tbody tr:nth-child(2) button");
  await directory.page.waitForSelector("#directory-detail pre");
  await directory.page.evaluate(() => document.activeElement.blur());
  await pause(until - Date.now() - 3000);
  for (const each of [overview, narrow, policies, directory]) {
    await each.page.bringToFront();
    await pause(500); // the charts are drawn when the page is seen
    await each.save();
  }
  await Promise.all(clients);
} finally {
  await browser.close();
  origin.close();
  origin.closeAllConnections();
}
