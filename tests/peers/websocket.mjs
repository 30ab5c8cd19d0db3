// SPDX-License-Identifier: Apache-2.0
// A WebSocket server or client by the package ws.
//
// usage: node websocket.mjs server       prints its port; answers what it is sent, and
//                                        "ping TEXT": pings, and says "pong TEXT" when the pong is there
//                                        "close CODE": closes with that code and the reason "bye"
//        node websocket.mjs client URL   expects a server such as this one; exits with 1 and says why when it is not so
//        node websocket.mjs server-h2, client-h2 URL
//                                        the same by Node's http2 and an extended CONNECT (RFC 8441), without TLS for
//                                        http URLs; ws reads and writes the frames
import http2 from "node:http2";
import {WebSocket, WebSocketServer} from "ws";

function serve() {
  const server = new WebSocketServer({
    host: "127.0.0.1", port: 0, perMessageDeflate: true, handleProtocols: (offered) => [...offered][0],
  });
  server.on("listening", () => console.log(server.address().port));
  server.on("connection", answer);
}

function answer(socket) {
  socket.on("pong", (text) => socket.send(`pong ${text}`));
  socket.on("message", (content, isBinary) => {
    const [word, argument] = isBinary ? [] : content.toString().split(" ");
    if (word === "ping") {
      socket.ping(argument);
    } else if (word === "close") {
      socket.close(Number(argument), "bye");
    } else {
      socket.send(content, {binary: isBinary});
    }
  });
}

/// A WebSocket over a stream of HTTP/2.
function over(stream, isServer, protocol) {
  const socket = new WebSocket(null, undefined, {autoPong: true});
  socket._isServer = isServer;
  socket._protocol = protocol;
  socket.setSocket(stream, Buffer.alloc(0), {maxPayload: 0, skipUTF8Validation: false, allowSynchronousEvents: true});
  return socket;
}

function serveHttp2() {
  const server = http2.createServer({settings: {enableConnectProtocol: true}});
  server.on("stream", (stream, headers) => {
    const foreign = ["sec-websocket-key", "upgrade", "connection"].filter((name) => name in headers);
    if (headers[":method"] !== "CONNECT" || headers[":protocol"] !== "websocket" || foreign.length > 0
        || headers["sec-websocket-version"] !== "13") {
      stream.respond({":status": 400}, {endStream: true});
      return;
    }
    const [protocol] = headers["sec-websocket-protocol"].split(",");
    stream.respond({":status": 200, "sec-websocket-protocol": protocol});
    answer(over(stream, true, protocol));
  });
  server.listen(0, "127.0.0.1", () => console.log(server.address().port));
}

/// What comes next: a message as text or Buffer, or ["close", code, reason].
function reader(socket) {
  const events = [];
  const waiting = [];
  const tell = (event) => (waiting.length > 0 ? waiting.shift()(event) : events.push(event));
  socket.on("message", (content, isBinary) => tell(isBinary ? content : content.toString()));
  socket.on("pong", (text) => tell(["pong", text.toString()]));
  socket.on("close", (code, reason) => tell(["close", code, reason.toString()]));
  return () => (events.length > 0 ? events.shift() : new Promise((resolve) => waiting.push(resolve)));
}

function expectSame(what, found, expected) {
  const same = Buffer.isBuffer(expected) ? expected.equals(found) : JSON.stringify(found) === JSON.stringify(expected);
  if (!same) {
    console.error(`${what}: ${JSON.stringify(found)?.slice(0, 200)}`);
    process.exit(1);
  }
}

async function open(url) {
  const socket = new WebSocket(url, ["chat"], {rejectUnauthorized: false, perMessageDeflate: true});
  const next = reader(socket);
  await new Promise((resolve, reject) => socket.on("open", resolve).on("error", reject));
  return [socket, next];
}

async function openHttp2(url) {
  const session = http2.connect(url, {rejectUnauthorized: false});
  await new Promise((resolve, reject) => session.on("remoteSettings", resolve).on("error", reject));
  expectSame("enableConnectProtocol", session.remoteSettings.enableConnectProtocol, true);
  const stream = session.request({
    ":method": "CONNECT", ":protocol": "websocket", ":path": new URL(url).pathname, "sec-websocket-version": "13",
    "sec-websocket-protocol": "chat",
  });
  const headers = await new Promise((resolve, reject) => stream.on("response", resolve).on("error", reject));
  expectSame("status", headers[":status"], 200);
  const socket = over(stream, false, headers["sec-websocket-protocol"]);
  socket.on("close", () => session.close());
  return [socket, reader(socket)];
}

async function ask(url, open) {
  let [socket, next] = await open(url);
  expectSame("protocol", socket.protocol, "chat");
  for (const text of ["hello", "", "ü", "x".repeat(125), "y".repeat(126), "z".repeat(70_000)]) {
    socket.send(text);
    expectSame("text", await next(), text);
  }
  const large = Buffer.alloc(4 << 20, "0123456789abcdef");
  socket.send(large);
  expectSame("binary", await next(), large);
  socket.send("in ", {fin: false});
  socket.send("parts", {fin: true});
  expectSame("fragments", await next(), "in parts");
  socket.ping("mine");
  expectSame("pong", await next(), ["pong", "mine"]);
  socket.send("ping theirs");
  expectSame("ping", await next(), "pong theirs");
  socket.close(4321, "done");
  expectSame("close by the client", await next(), ["close", 4321, "done"]);
  for (const code of [1000, 1001, 3000, 4999]) {
    [socket, next] = await open(url);
    socket.send(`close ${code}`);
    expectSame("close by the server", await next(), ["close", code, "bye"]);
  }
}

const [what, url] = process.argv.slice(2);
await {
  "server": serve,
  "server-h2": serveHttp2,
  "client": () => ask(url, open),
  "client-h2": () => ask(url, openHttp2),
}[what]();
