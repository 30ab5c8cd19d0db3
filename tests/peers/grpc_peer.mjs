// SPDX-License-Identifier: Apache-2.0
//
// A server and a client of gRPC made of @grpc/grpc-js. Messages are octets, so that no schema is needed.
//
//     node grpc_peer.mjs server [CERT KEY]       prints its port, then `cancelled` for each call that is cancelled
//     node grpc_peer.mjs client TARGET [CA]      makes calls of every kind; prints what came of them as one line of JSON
//     node grpc_peer.mjs refusals TARGET [CA]    the same for calls that are refused
//     node grpc_peer.mjs keys TARGET [CA]        the same for calls with an Idempotency-Key
//     node grpc_peer.mjs health TARGET [CA]      the same for the health service, which the server has
import fs from 'node:fs';
import grpc from '@grpc/grpc-js';
import {HealthImplementation} from 'grpc-health-check';

const plain = (buffer) => buffer;
const method = (path, requestStream, responseStream) => ({
  path, requestStream, responseStream,
  requestSerialize: plain, requestDeserialize: plain, responseSerialize: plain, responseDeserialize: plain,
});
const service = {
  unary: method('/peer.Peer/Unary', false, false),
  clientStream: method('/peer.Peer/ClientStream', true, false),
  serverStream: method('/peer.Peer/ServerStream', false, true),
  bidi: method('/peer.Peer/Bidi', true, true),
  slow: method('/peer.Peer/Slow', false, false),
  fail: method('/peer.Peer/Fail', false, false),
  count: method('/peer.Peer/Count', false, false),
  stop: method('/peer.Peer/Stop', false, false),
};

function serve(certificate, key) {
  const server = new grpc.Server({'grpc.max_receive_message_length': -1});
  const health = new HealthImplementation({'peer.Peer': 'SERVING'});
  health.addToServer(server);
  let count = 0;
  server.addService(service, {
    unary(call, done) {
      const initial = new grpc.Metadata();
      initial.set('x-initial', String(call.metadata.get('x-ask')[0] ?? ''));
      call.sendMetadata(initial);
      const trailing = new grpc.Metadata();
      trailing.set('x-trailing', 'end');
      trailing.set('x-binary-bin', Buffer.from([0, 1, 255]));
      done(null, call.request, trailing);
    },
    clientStream(call, done) {
      let octets = 0;
      call.on('data', (message) => { octets += message.length; });
      call.on('end', () => done(null, Buffer.from(String(octets))));
    },
    serverStream(call) {
      for (let i = 0; i < 100; ++i) {
        call.write(Buffer.concat([Buffer.from([i]), call.request]));
      }
      call.end();
    },
    bidi(call) {
      call.on('data', (message) => call.write(message));
      call.on('end', () => call.end());
    },
    slow(call) {
      call.on('cancelled', () => console.log('cancelled'));
    },
    fail(call, done) {
      done({code: grpc.status.FAILED_PRECONDITION, details: 'not now: caf\u00e9'});
    },
    count(call, done) {
      done(null, Buffer.from(String(++count)));
    },
    stop(call, done) {
      health.setStatus('peer.Peer', 'NOT_SERVING');
      done(null, Buffer.alloc(0));
    },
  });
  const credentials = certificate === undefined
    ? grpc.ServerCredentials.createInsecure()
    : grpc.ServerCredentials.createSsl(null, [{cert_chain: fs.readFileSync(certificate), private_key: fs.readFileSync(key)}]);
  server.bindAsync('127.0.0.1:0', credentials, (error, port) => {
    if (error) throw error;
    console.log(port);
  });
}

const clientOf = (target, ca) => new (grpc.makeGenericClientConstructor(service, 'peer.Peer'))(
  target, ca === undefined ? grpc.credentials.createInsecure() : grpc.credentials.createSsl(fs.readFileSync(ca)),
  {'grpc.max_receive_message_length': -1, 'grpc.enable_retries': 0, 'grpc.ssl_target_name_override': 'localhost'});

function unary(client, name, message, {deadline, metadata = {}, cancelAfter} = {}) {
  return new Promise((resolve) => {
    const fields = new grpc.Metadata();
    for (const [key, value] of Object.entries(metadata)) fields.set(key, value);
    const seen = {};
    const options = deadline === undefined ? {} : {deadline: Date.now() + deadline};
    const call = client[name](message, fields, options, (error, answer) => {
      seen.code = error?.code ?? 0;
      seen.details = error?.details;
      seen.answer = answer;
      seen.pushback = error?.metadata?.get('grpc-retry-pushback-ms')[0];
      seen.ratelimit = error?.metadata?.get('ratelimit')[0];
    });
    call.on('metadata', (initial) => { seen.initial = initial.get('x-initial')[0]; });
    call.on('status', (status) => {
      seen.trailing = status.metadata.get('x-trailing')[0];
      seen.binary = status.metadata.get('x-binary-bin')[0]?.toString('hex');
      setImmediate(() => resolve(seen));
    });
    if (cancelAfter !== undefined) setTimeout(() => call.cancel(), cancelAfter);
  });
}

const collect = (call) => new Promise((resolve, reject) => {
  const messages = [];
  call.on('data', (message) => messages.push(message));
  call.on('error', reject);
  call.on('end', () => resolve(messages));
});

async function callAll(target, ca) {
  const client = clientOf(target, ca);
  const out = {};
  const first = await unary(client, 'unary', Buffer.from('hello'), {metadata: {'x-ask': 'this'}});
  out.unary = {...first, answer: first.answer?.toString()};
  const large = Buffer.alloc(4_000_000, 7);
  out.large = (await unary(client, 'unary', large)).answer?.equals(large) ?? false;
  out.fail = await unary(client, 'fail', Buffer.from(''));
  out.clientStream = await new Promise((resolve) => {
    const call = client.clientStream((error, answer) => resolve(error?.code ?? answer.toString()));
    for (let i = 0; i < 100; ++i) call.write(Buffer.alloc(10_000));
    call.end();
  });
  const many = await collect(client.serverStream(Buffer.alloc(1000, 1)));
  out.serverStream = [many.length, many.every((message, i) => message.length === 1001 && message[0] === i)];
  const both = client.bidi();
  const echoed = collect(both);
  for (let i = 0; i < 50; ++i) {
    both.write(Buffer.from(`message ${i}`));
    if (i % 10 === 0) await new Promise((resolve) => both.once('data', resolve));
  }
  both.end();
  out.bidi = (await echoed).map(String).filter((text, i) => text === `message ${i}`).length;
  out.deadline = (await unary(client, 'slow', Buffer.from(''), {deadline: 300})).code;
  out.cancel = (await unary(client, 'slow', Buffer.from(''), {cancelAfter: 300})).code;
  const parallel = await Promise.all([...Array(50).keys()].map((i) => unary(client, 'unary', Buffer.from(String(i)))));
  out.parallel = parallel.filter((each, i) => each.answer?.toString() === String(i)).length;
  client.close();
  console.log(JSON.stringify(out));
}

async function callRefused(target, ca) {
  const client = clientOf(target, ca);
  const out = {};
  const of = (path) => client.makeUnaryRequest.bind(client, path, plain, plain);
  const ask = (path, message = Buffer.from('x'), options = {}, fields = {}) => new Promise((resolve) => {
    const metadata = new grpc.Metadata();
    for (const [key, value] of Object.entries(fields)) metadata.set(key, value);
    of(path)(message, metadata, options, (error) => resolve({
      code: error?.code ?? 0, details: error?.details, pushback: error?.metadata?.get('grpc-retry-pushback-ms')[0],
      ratelimit: error?.metadata?.get('ratelimit')[0],
    }));
  });
  await ask('/limited/Unary');
  out.quota = await ask('/limited/Unary');
  out.unauthenticated = await ask('/guarded/Unary');
  out.forbidden = await ask('/guarded/Unary', undefined, {}, {authorization: 'Bearer reads'});
  out.noRoute = await ask('/nowhere/Unary');
  out.away = await ask('/away/Unary');
  out.tooLate = await ask('/peer.Peer/Slow', Buffer.from(''), {deadline: Date.now() + 300});
  out.tooLarge = await ask('/peer.Peer/Unary', Buffer.alloc(6_000_000));
  client.close();
  console.log(JSON.stringify(out));
}

async function callWithKeys(target, ca) {
  const client = clientOf(target, ca);
  const ask = (key, message) => new Promise((resolve) => {
    const metadata = new grpc.Metadata();
    if (key !== undefined) metadata.set('idempotency-key', key);
    const seen = {};
    const call = client.count(Buffer.from(message), metadata, (error, answer) => {
      resolve({code: error?.code ?? 0, answer: answer?.toString(), ...seen});
    });
    call.on('metadata', (initial) => { seen.replayed = initial.get('idempotent-replayed')[0]; });
  });
  const out = {first: await ask('"a"', 'x'), replay: await ask('"a"', 'x'), second: await ask('"b"', 'x'),
               reused: await ask('"a"', 'y'), malformed: await ask('"a', 'x'), missing: await ask(undefined, 'x')};
  client.close();
  console.log(JSON.stringify(out));
}

// Messages of grpc.health.v1: a request with the service's name, a response with a number.
const healthRequest = Buffer.concat([Buffer.from([0x0a, 9]), Buffer.from('peer.Peer')]);
const statusOf = (message) => ['UNKNOWN', 'SERVING', 'NOT_SERVING'][message.length ? message[1] : 0];

async function callHealth(target, ca) {
  const client = clientOf(target, ca);
  const metadata = new grpc.Metadata();
  const check = () => new Promise((resolve, reject) => {
    client.makeUnaryRequest('/grpc.health.v1.Health/Check', plain, plain, healthRequest, metadata,
                            (error, answer) => (error ? reject(error) : resolve(statusOf(answer))));
  });
  const watch = client.makeServerStreamRequest('/grpc.health.v1.Health/Watch', plain, plain, healthRequest, metadata);
  const watched = [];
  const next = () => new Promise((resolve) => watch.once('data', (message) => resolve(watched.push(statusOf(message)))));
  watch.on('error', () => {});
  await next();
  const before = await check();
  const told = next();
  await unary(client, 'stop', Buffer.alloc(0));
  await told;
  const after = await check();
  watch.cancel();
  client.close();
  console.log(JSON.stringify({before, after, watched}));
}

const [what, ...rest] = process.argv.slice(2);
await ({server: serve, client: callAll, refusals: callRefused, keys: callWithKeys, health: callHealth})[what](...rest);
