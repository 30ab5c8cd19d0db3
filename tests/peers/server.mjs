// SPDX-License-Identifier: Apache-2.0
//
// Servers made of packages that are not ours, for the end-to-end tests of the client:
//
//   node server.mjs rate-limit draft-6|draft-7|draft-8 LIMIT SECONDS
//   node server.mjs idempotency
//   node server.mjs scim 4|5
//   node server.mjs paths FOLDER
//
// Prints the port on which it listens at 127.0.0.1, one line. GET /counts tells what has happened so far.
import { randomUUID } from "node:crypto";
import express from "express";

const [kind, ...options] = process.argv.slice(2);
const app = kind === "scim" && options[0] === "4" ? (await import("express4")).default() : express();
const counts = { answered: 0, refused: 0, executed: {}, lost: 0, replayed: 0 };

app.get("/counts", (request, response) => response.json(counts));

/// Every answer says in the fields of one draft what is left of a quota in fixed windows.
async function rateLimit(standardHeaders, limit, seconds) {
    const { rateLimit } = await import("express-rate-limit");
    app.use((request, response, next) => {
        response.on("finish", () => {
            counts.answered += 1;
            counts.refused += response.statusCode === 429 ? 1 : 0;
        });
        next();
    });
    app.use(rateLimit({ standardHeaders, legacyHeaders: false, limit: Number(limit), windowMs: Number(seconds) * 1000 }));
    app.get("/", (request, response) => response.send("here you are"));
}

/// A POST to /pay counts by its key. Every third first answer is lost on its way. /slow takes longer than a client waits.
async function idempotency() {
    const { idempotency, getSharedIdempotencyService } = (await import("express-idempotency")).default;
    const known = new Set();
    app.use(express.text({ type: "*/*" }));
    app.use((request, response, next) => {
        const key = request.get("idempotency-key");
        if (request.path === "/pay" && key !== undefined && !known.has(key)) {
            known.add(key);
            if (known.size % 3 === 0) {
                response.end = () => request.socket.destroy();
                counts.lost += 1;
            }
        }
        next();
    });
    app.use(idempotency());
    const execute = (request) => {
        const key = request.get("idempotency-key");
        counts.executed[key] = (counts.executed[key] ?? 0) + 1;
    };
    // The middleware answers a replay and then goes on to the handler, which has to ask.
    const isReplay = (request) => {
        const hit = getSharedIdempotencyService().isHit(request);
        counts.replayed += hit ? 1 : 0;
        return hit;
    };
    app.post("/pay", (request, response) => {
        if (!isReplay(request)) {
            execute(request);
            response.status(201).send("paid");
        }
    });
    app.post("/slow", (request, response) => {
        if (!isReplay(request)) {
            execute(request);
            setTimeout(() => response.status(201).send("paid at last"), 1000);
        }
    });
    // Its errors, in particular 409 to a key in flight, are Express's pages of HTML.
}

/// Users and groups in memory, with pages by index. The token is "secret". On Express 5, where a query cannot be
/// changed, the routers of SCIMMY do not follow startIndex and count.
async function scim() {
    const SCIMMY = (await import("scimmy")).default;
    const SCIMMYRouters = (await import("scimmy-routers")).default;
    const handlers = (unique) => {
        const kept = new Map();
        return {
            egress: (resource) => {
                if (resource.id) {
                    if (!kept.has(resource.id)) {
                        throw new SCIMMY.Types.Error(404, null, `Resource ${resource.id} not found`);
                    }
                    return kept.get(resource.id);
                }
                const all = [...kept.values()];
                return resource.filter ? resource.filter.match(all) : all;
            },
            ingress: (resource, instance) => {
                const id = resource.id ?? randomUUID();
                for (const other of kept.values()) {
                    if (unique && other.id !== id && other[unique] === instance[unique]) {
                        throw new SCIMMY.Types.Error(409, "uniqueness", `${unique} is taken`);
                    }
                }
                kept.set(id, JSON.parse(JSON.stringify({ ...instance, id })));
                return kept.get(id);
            },
            degress: (resource) => kept.delete(resource.id),
        };
    };
    SCIMMY.Resources.declare(SCIMMY.Resources.User, handlers("userName"));
    SCIMMY.Resources.declare(SCIMMY.Resources.Group, handlers(""));
    app.use("/scim/v2", (request, response, next) => {
        counts.answered += 1;
        next();
    });
    app.use("/scim/v2", new SCIMMYRouters({
        type: "bearer",
        handler: (request) => {
            if (request.header("Authorization") !== "Bearer secret") {
                throw new Error("no such token");
            }
            return "someone";
        },
    }));
}

/// Says which part of it a path led to, by Express's router and, below that, by its files.
async function paths(folder) {
    app.use("/admin", (request, response) => response.send(`ADMIN ${request.originalUrl}`));
    app.use(express.static(folder));
    app.use((request, response) => response.send(`OPEN ${request.originalUrl}`));
}

await { "rate-limit": rateLimit, idempotency, scim, paths }[kind](...options);
const server = app.listen(0, "127.0.0.1", () => console.log(server.address().port));
