#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same as grpc_peer.mjs, made of grpcio.

usage: grpc_peer.py server [CERT KEY]
       grpc_peer.py client TARGET [CA]
       grpc_peer.py refusals TARGET [CA]
       grpc_peer.py keys TARGET [CA]
       grpc_peer.py health TARGET [CA]

The health service is one of the other server only: no package of the distribution has it for Python.
"""

import concurrent.futures
import itertools
import json
import pathlib
import sys
import threading

import grpc

OPTIONS = (("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1),
           ("grpc.enable_retries", 0), ("grpc.ssl_target_name_override", "localhost"))


class Peer:
    counts = itertools.count(1)

    @staticmethod
    def unary(message, context):
        asked = dict(context.invocation_metadata()).get("x-ask", "")
        context.send_initial_metadata((("x-initial", asked),))
        context.set_trailing_metadata((("x-trailing", "end"), ("x-binary-bin", b"\0\1\xff")))
        return message

    @staticmethod
    def client_stream(messages, _context):
        return str(sum(len(each) for each in messages)).encode()

    @staticmethod
    def server_stream(message, _context):
        for i in range(100):
            yield bytes([i]) + message

    @staticmethod
    def bidi(messages, _context):
        yield from messages

    @staticmethod
    def slow(_message, context):
        over = threading.Event()
        context.add_callback(over.set)
        over.wait(60)
        print("cancelled", flush=True)
        return b""

    @staticmethod
    def fail(_message, context):
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not now: caf\u00e9")

    @staticmethod
    def count(_message, _context):
        return str(next(Peer.counts)).encode()


def serve(certificate=None, key=None):
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(16), options=OPTIONS)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("peer.Peer", {
        "Unary": grpc.unary_unary_rpc_method_handler(Peer.unary),
        "ClientStream": grpc.stream_unary_rpc_method_handler(Peer.client_stream),
        "ServerStream": grpc.unary_stream_rpc_method_handler(Peer.server_stream),
        "Bidi": grpc.stream_stream_rpc_method_handler(Peer.bidi),
        "Slow": grpc.unary_unary_rpc_method_handler(Peer.slow),
        "Fail": grpc.unary_unary_rpc_method_handler(Peer.fail),
        "Count": grpc.unary_unary_rpc_method_handler(Peer.count),
    }),))
    if certificate is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        pair = (pathlib.Path(key).read_bytes(), pathlib.Path(certificate).read_bytes())
        port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials((pair,)))
    server.start()
    print(port, flush=True)
    server.wait_for_termination()


def channel_to(target, ca):
    if ca is None:
        return grpc.insecure_channel(target, options=OPTIONS)
    return grpc.secure_channel(target, grpc.ssl_channel_credentials(pathlib.Path(ca).read_bytes()), options=OPTIONS)


def code_of(call):
    return call.code().value[0]


def call_all(target, ca=None):
    channel = channel_to(target, ca)
    out = {}
    unary = channel.unary_unary("/peer.Peer/Unary")
    answer, call = unary.with_call(b"hello", metadata=(("x-ask", "this"),), timeout=30)
    trailing = dict(call.trailing_metadata())
    out["unary"] = {"code": code_of(call), "answer": answer.decode(), "initial": dict(call.initial_metadata())["x-initial"],
                    "trailing": trailing["x-trailing"], "binary": trailing["x-binary-bin"].hex()}
    large = bytes([7]) * 4_000_000
    out["large"] = unary(large, timeout=60) == large
    failed = channel.unary_unary("/peer.Peer/Fail").future(b"", timeout=30)
    out["fail"] = {"code": code_of(failed), "details": failed.details()}
    out["clientStream"] = channel.stream_unary("/peer.Peer/ClientStream")(iter([bytes(10_000)] * 100), timeout=30).decode()
    many = list(channel.unary_stream("/peer.Peer/ServerStream")(b"\1" * 1000, timeout=30))
    out["serverStream"] = [len(many), all(len(each) == 1001 and each[0] == i for i, each in enumerate(many))]
    echoed = channel.stream_stream("/peer.Peer/Bidi")((f"message {i}".encode() for i in range(50)), timeout=30)
    out["bidi"] = sum(each == f"message {i}".encode() for i, each in enumerate(echoed))
    slow = channel.unary_unary("/peer.Peer/Slow")
    out["deadline"] = code_of(slow.future(b"", timeout=0.3))
    cancelled = slow.future(b"", timeout=30)
    threading.Timer(0.3, cancelled.cancel).start()
    out["cancel"] = code_of(cancelled)
    parallel = [unary.future(str(i).encode(), timeout=30) for i in range(50)]
    out["parallel"] = sum(each.result() == str(i).encode() for i, each in enumerate(parallel))
    print(json.dumps(out))


def call_refused(target, ca=None):
    channel = channel_to(target, ca)

    def ask(path, message=b"x", timeout=30, metadata=()):
        call = channel.unary_unary(path).future(message, timeout=timeout, metadata=metadata)
        code = code_of(call)
        fields = dict(call.initial_metadata() or ()) | dict(call.trailing_metadata() or ())
        return {"code": code, "details": call.details(), "pushback": fields.get("grpc-retry-pushback-ms"),
                "ratelimit": fields.get("ratelimit")}

    out = {}
    ask("/limited/Unary")
    out["quota"] = ask("/limited/Unary")
    out["unauthenticated"] = ask("/guarded/Unary")
    out["forbidden"] = ask("/guarded/Unary", metadata=(("authorization", "Bearer reads"),))
    out["noRoute"] = ask("/nowhere/Unary")
    out["away"] = ask("/away/Unary")
    out["tooLate"] = ask("/peer.Peer/Slow", timeout=0.3)
    out["tooLarge"] = ask("/peer.Peer/Unary", bytes(6_000_000))
    print(json.dumps(out))


def call_with_keys(target, ca=None):
    channel = channel_to(target, ca)

    def ask(key, message):
        call = channel.unary_unary("/peer.Peer/Count").future(message, timeout=30,
                                                              metadata=(("idempotency-key", key),) if key else ())
        seen = {"code": code_of(call)}
        if seen["code"] == 0:
            seen["answer"] = call.result().decode()
            seen |= {"replayed": value for name, value in call.initial_metadata() if name == "idempotent-replayed"}
        return seen

    print(json.dumps({"first": ask('"a"', b"x"), "replay": ask('"a"', b"x"), "second": ask('"b"', b"x"),
                      "reused": ask('"a"', b"y"), "malformed": ask('"a', b"x"), "missing": ask(None, b"x")}))


# Messages of grpc.health.v1: a request with the service's name, a response with a number.
HEALTH_REQUEST = b"\x0a\x09peer.Peer"


def health_of(message):
    return ("UNKNOWN", "SERVING", "NOT_SERVING")[message[1] if message else 0]


def call_health(target, ca=None):
    channel = channel_to(target, ca)
    check = channel.unary_unary("/grpc.health.v1.Health/Check")
    watch = channel.unary_stream("/grpc.health.v1.Health/Watch")(HEALTH_REQUEST, timeout=60)
    watched = [health_of(next(watch))]
    before = health_of(check(HEALTH_REQUEST, timeout=30))
    channel.unary_unary("/peer.Peer/Stop")(b"", timeout=30)
    watched.append(health_of(next(watch)))
    after = health_of(check(HEALTH_REQUEST, timeout=30))
    watch.cancel()
    print(json.dumps({"before": before, "after": after, "watched": watched}))


if __name__ == "__main__":
    {"server": serve, "client": call_all, "refusals": call_refused, "keys": call_with_keys, "health": call_health}[sys.argv[1]](*sys.argv[2:])
