// SPDX-License-Identifier: Apache-2.0
// Takes the pictures of the guide: node pictures.mjs GATEWAY ADMIN ORIGIN_PORTS FOLDER
// A small shop is open for some minutes: three servers, of which one dies, clients of different appetite, payments that are
// retried and some that are lost, a directory.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { chromium } from "playwright-core";

const [gateway, admin, originPorts, folder] = process.argv.slice(2);
const secs = Number(process.env.PICTURE_SECS ?? 420); // more than charts show
const bearer = { Authorization: "Bearer bench" };
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Answers after a few milliseconds, longer for searches, now and then with an error; some payments get no answer. */
function startOrigin(port) {
  let count = 0;
  const origin = createServer((request, response) => {
    request.resume().on("end", () => {
      const waits = request.url.startsWith("/v1/search") ? 6 + Math.random() * 16 : 1 + Math.random() * 4;
      setTimeout(() => {
        if (request.headers["x-lost"]) {
          request.socket.destroy();
          return;
        }
        response.writeHead(++count % 700 === 0 && request.method === "GET" ? 503 : request.url.endsWith("/999") ? 404 : 200, { "Content-Type": "application/json" });
        response.end('{"ok":true}\n');
      }, waits);
    });
  });
  return new Promise((resolve) => origin.listen(Number(port), "127.0.0.1", () => resolve(origin)));
}
function stop(origin) {
  origin.close();
  origin.closeAllConnections();
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
  const phase = Math.random() * 2;
  for (let i = 0; Date.now() < until; ++i) {
    const { headers, path: other, ...more } = options(i);
    await (await fetch(`${gateway}${other ?? path}`, { ...more, headers: { "X-Shop": key, ...headers } })).arrayBuffer();
    await pause(each * (1.5 + Math.sin(Date.now() / 27000 + phase) + 0.3 * Math.sin(Date.now() / 5000)));
  }
}
/** Every order is paid twice by an anxious client; of some the answer is lost. */
const tills = ["web-shop", "app", "call-centre"]; // names of tokens, and the tokens
const pay = (till) => (i) => ({
  method: "POST", body: '{"amount":100}',
  headers: { Authorization: `Bearer ${tills[till]}`, "Idempotency-Key": `"order-${Math.floor(i / 2)}"`, ...(i % 900 === 120 + 80 * till ? { "X-Lost": "1" } : {}) },
});
const browse = (i) => ({ path: i % 60 === 59 ? "/v1/items/999" : undefined });

const origins = await Promise.all(originPorts.split(",").map(startOrigin));
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--hide-scrollbars"] });

/** A view at one width and in one theme, with what is done there before it is taken. */
async function picture(view, width, height, colorScheme, before = async () => {}) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme });
  await page.goto(`${admin}/#/${view}`);
  await page.waitForSelector("#live.is-live");
  await page.waitForTimeout(2500); // two events: the figures of now
  await before(page);
  await page.screenshot({ path: `${folder}/console-${view}-${width === 400 ? "narrow-" : ""}${colorScheme}.png` });
  await page.close();
}
const openRecord = async (page) => {
  await page.click("#unknown li:nth-child(2) summary");
  await page.evaluate(() => document.activeElement.blur());
};
const openUser = async (page) => {
  await page.click("#directory-list th button");
  await page.waitForSelector("#directory-list th[aria-sort=ascending]");
  await page.click("#directory-list tbody tr:nth-child(2) button");
  await page.waitForSelector("#directory-detail pre");
  await page.evaluate(() => document.activeElement.blur());
};

try {
  await fillDirectory();
  const until = Date.now() + secs * 1000;
  const clients = [
    ...Array.from({ length: 8 }, (unused, i) => client(until, "/v1/items", `shop-${i}`, 14 + 5 * i, browse)),
    ...Array.from({ length: 3 }, (unused, i) => client(until, "/v1/search", `crawler-${i}`, 22)),
    ...Array.from({ length: 3 }, (unused, i) => client(until, "/payments", tills[i], 60, pay(i))),
  ];
  await pause(secs * 700);
  stop(origins[2]);
  await pause(until - Date.now() - 60000);
  for (const theme of ["light", "dark"]) {
    await picture("overview", 1440, 1000, theme);
    await picture("overview", 400, 900, theme);
    await picture("policies", 1440, 1000, theme);
    await picture("idempotency", 1440, 900, theme, openRecord);
    await picture("idempotency", 400, 900, theme);
    await picture("directory", 1440, 900, theme, openUser);
  }
  await Promise.all(clients);
} finally {
  await browser.close();
  origins.forEach(stop);
}
