#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does an implementation of Idempotency-Key do the careful thing? Cases C1-C9, N1-N15 and S1-S27, from outside.

    tests/blackbox/idempotency.py --base-url http://127.0.0.1:8080 --origin 127.0.0.1:3000

README.md beside this file says how to put an implementation between the two, and what the options are.
"""

import argparse
import concurrent.futures
import contextlib
import gzip
import json
import re
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

from cases import CASES, NotApplicable, await_answer, case, check, run_cases, unseen
from http_ends import PATIENCE, Closed, Connection, Origin, answer


class Bench:
    """The implementation between a client and the origin server of this program."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.variants = dict(each.split("=", 1) for each in arguments.variant)
        self.origin = Origin(*arguments.origin)
        self.process = None

    # ---- the implementation as a process ----

    def start(self):
        command = shlex.split(self.arguments.start.replace("{origin}", self.origin.url))
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        await_answer(self.arguments.base_url, lambda: self.process.poll() is not None)

    def stop(self, number):
        self.process.send_signal(number)
        self.process.wait(PATIENCE)

    def needs_process(self):
        if self.process is None:
            raise NotApplicable("needs --start, so that it can be killed and started again")

    # ---- requests ----

    def url(self, variant):
        if variant is None:
            return self.arguments.base_url
        if variant not in self.variants:
            raise NotApplicable(f"needs --variant {variant}=URL")
        return self.variants[variant]


class Case:
    """One run of a case: a token of its own, which its requests have in their path, and its keys."""

    def __init__(self, bench, variant=None):
        self.bench = bench
        self.origin = bench.origin
        self.url = urllib.parse.urlsplit(bench.url(variant))
        self.token = "case-" + secrets.token_hex(8)
        self.key = self.new_key()
        self.held = threading.Event()  # what `hold` waits for

    def new_key(self):
        key = secrets.token_hex(16)
        return key if self.bench.arguments.bare_keys else f'"{key}"'

    def connect(self):
        return Connection(socket.create_connection((self.url.hostname, self.url.port or 80), PATIENCE))

    def request(self, key=None, body=b'{"amount":1}', method="POST", path="", fields=(), tenant="one", chunks=None):
        """The bytes of a request. `key` may be "" for none, or a list of several."""
        keys = key if isinstance(key, list) else [key if key is not None else self.key]
        target = f"{self.url.path.rstrip('/')}/{self.token}{path}"
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self.url.netloc}"]
        lines += [f"Authorization: Bearer {tenant}"] if tenant else []
        lines += [f"Idempotency-Key: {each}" for each in keys if each or len(keys) > 1]
        lines += fields
        if chunks is None:
            lines += [f"Content-Length: {len(body)}"] if method != "GET" else []
            content = body
        else:
            lines += ["Transfer-Encoding: chunked"]
            content = b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in chunks) + b"0\r\n\r\n"
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + content

    def ask(self, *positional, **named):
        """One request over a connection of its own."""
        with self.connect() as connection:
            connection.send(self.request(*positional, **named))
            return connection.response()

    def plan(self, reply):
        """What the origin server does: bytes to answer with, or a function of the number of the request, the request
        and the connection. None closes."""
        self.origin.plans[self.token] = reply if callable(reply) else lambda *_: reply

    @contextlib.contextmanager
    def under_way(self, reply=answer(), **named):
        """A first request that the origin server has and does not answer before the block ends or calls `held.set`."""
        def hold(*_):
            self.held.wait(PATIENCE)
            return reply
        self.plan(hold)
        with self.connect() as connection:
            connection.send(self.request(**named))
            try:
                check(self.origin.wait_for(self.token), "the first request did not reach the origin server")
                yield connection
            finally:
                self.held.set()

    def count(self):
        return self.origin.count(self.token)

    def ran(self, times):
        check(self.count() == times, f"the origin server had the request {self.count()} times, not {times}")

    def is_replay(self, response):
        marker = self.bench.arguments.marker
        return marker == "none" or (response.get(marker) or "").lower() == "true"

    def same(self, first, again):
        check(again.status == first.status, f"the retry got {again.status}, the first {first.status}")
        check(again.body == first.body, "the retry got another body")
        check(self.is_replay(again), f"the retry has no {self.bench.arguments.marker}: true")

    def until_settled(self, **named):
        """Asks until the answer is not that the first request still runs."""
        end = time.monotonic() + PATIENCE
        while True:
            response = self.ask(**named)
            if response.status != 409 or code(response) != "in-flight" or time.monotonic() > end:
                return response
            time.sleep(0.02)


def code(response):
    """The `code` of a problem, or the end of its type."""
    try:
        problem = json.loads(response.body)
        return problem.get("code") or problem.get("type", "").rpartition("#")[2]
    except (ValueError, AttributeError):
        return None


def refused(response, status, wanted=None):
    check(response.status == status, f"got {response.status}, not {status}")
    check(wanted is None or code(response) in (wanted, None), f"the problem is {code(response)}, not {wanted}")


# ---- crashes ----

@case("C1", "a request that is not complete leaves nothing behind when the gateway dies")
def dies_before_the_claim(bench):
    bench.needs_process()
    run = Case(bench)
    with run.connect() as connection:
        connection.send(run.request()[:-3])
        check(run.ask(key=run.new_key(), path="/other").status == 201, "it does not work")
        bench.stop(signal.SIGKILL)
    bench.start()
    check(run.ask().status == 201, "the retry did not run")
    run.ran(2)


unseen("C2", "between connecting and the first byte upstream, a crash leaves nothing or an unknown outcome",
       "the place cannot be met from outside", "gateway_crash.leaves_at_each_place_what_the_design_says")


@case("C3", "a request that the origin server had when the gateway died is not run again")
def dies_after_dispatch(bench):
    bench.needs_process()
    run = Case(bench)
    with run.under_way():
        bench.stop(signal.SIGKILL)
    bench.start()
    retry = run.ask()
    refused(retry, 409, "outcome-unknown")
    check(retry.get("Retry-After"), "no Retry-After")
    refused(run.ask(body=b"other"), 422, "key-reused")
    run.ran(1)


unseen("C4", "an answer that came and was not written down is an unknown outcome",
       "the place cannot be met from outside", "gateway_crash.leaves_at_each_place_what_the_design_says")


@case("C5", "an answer that a client has seen is replayed after a crash")
def dies_after_the_answer(bench):
    bench.needs_process()
    run = Case(bench)
    first = run.ask()
    bench.stop(signal.SIGKILL)
    bench.start()
    run.same(first, run.ask())
    run.ran(1)


unseen("C6", "a torn write is noticed", "needs a look at the file",
       "store_sqlite.has_after_a_kill_whatever_was_answered_before and the journal of SQLite")


@case("C7", "many requests under way when the gateway died have an unknown outcome at once, without a wait for leases")
def dies_with_many_under_way(bench):
    bench.needs_process()
    runs = [Case(bench) for _ in range(50)]
    with contextlib.ExitStack() as stack:
        for run in runs:
            stack.enter_context(run.under_way())
        bench.stop(signal.SIGKILL)
    bench.start()
    for run in runs:
        refused(run.ask(), 409, "outcome-unknown")
        run.ran(1)


unseen("C8", "a crash while old records are removed loses no key", "the moment cannot be met from outside",
       "gateway_crash.forgets_no_key_while_it_cleans_up")
unseen("C9", "a full disk is 503 before dispatch", "needs a disk that fails",
       "store_sqlite.says_of_each_change_whether_the_disk_was_full, store_sqlite.reports_an_io_error_and_goes_on_when_it_is_over")


# ---- network and timing ----

@case("N1", "of content that breaks off nothing is claimed and nothing forwarded")
def content_breaks_off(bench):
    run = Case(bench)
    for whole, cut in ((run.request(), -3), (run.request(chunks=[b"abc", b"def"]), -8)):
        with run.connect() as connection:
            connection.send(whole[:cut])
    check(run.ask().status == 201, "the key cannot be used afterwards")
    check(run.origin.heads[run.token] == 1, "the origin server was bothered with a part of it")
    run.ran(1)


@case("N2", "a request goes on when its client has gone, and a retry gets the answer")
def client_leaves(bench):
    for leave in (Connection.close, Connection.reset):
        run = Case(bench)
        with run.under_way() as connection:
            leave(connection)
            refused(run.ask(), 409, "in-flight")
        response = run.until_settled()
        check(response.status == 201 and response.body == b"done", f"the retry got {response.status}")
        run.ran(1)


@case("N3", "no connection to the origin server: 502 or 503, and the key may be used again")
def nothing_listens(bench):
    run = Case(bench)
    bench.origin.stop()
    try:
        down = run.ask()
    finally:
        bench.origin.start()
    check(down.status in (502, 503, 504), f"got {down.status}")
    response = run.ask()
    check(response.status == 201, f"the retry got {response.status}")
    run.ran(1)


@case("N4", "a connection that the origin server closes upon the request: no second run by itself")
def stale_connection(bench):
    run = Case(bench)
    run.ask(key=run.new_key())  # a connection that is kept
    run.plan(lambda *_: None)
    response = run.ask()
    check(response.status >= 500, f"got {response.status}")
    run.ran(2)
    run.plan(answer())
    refused(run.ask(), 409, "outcome-unknown")
    run.ran(2)


@case("N5", "the answer that comes after a 504 is recorded, and a retry gets it")
def late_answer(bench):
    run = Case(bench, "timeout")
    with run.under_way() as connection:
        late = connection.response()
        check(late.status == 504, f"got {late.status}")
        refused(run.ask(), 409)
    end = time.monotonic() + PATIENCE
    while (response := run.ask()).status == 409 and time.monotonic() < end:
        time.sleep(0.02)
    check(response.status == 201 and response.body == b"done", f"the retry got {response.status}")
    run.ran(1)


@case("N6", "an answer that is cut is not stored, and not run again")
def cut_answer(bench):
    for cut in (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhel",
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"):
        run = Case(bench)

        def send_and_close(_number, _request, connection, cut=cut):
            connection.send(cut)
        run.plan(send_and_close)
        with contextlib.suppress(Closed):
            check(run.ask().status >= 500, "the first answer looks whole")
        refused(run.ask(), 409, "outcome-unknown")
        run.ran(1)


unseen("N7", "a living owner renews its lease; an overtaken one changes nothing", "needs two gateways on one store",
       "idempotency_model.*, idempotency_change.of_an_owner_that_was_overtaken_changes_nothing")


@case("N8", "of two at once one runs")
def race(bench):
    def pair(_):
        run = Case(bench)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            answers = list(pool.map(lambda _: run.ask(), range(2)))
        check(all(each.status in (201, 409) for each in answers), "unexpected statuses")
        check(any(each.status == 201 for each in answers), "neither of the two got an answer")
        run.ran(1)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(pair, range(100)))


unseen("N9", "a store that fails over may lose claims, and says so", "needs a shared store",
       "nothing yet: its stores are those of one process")
unseen("N10", "a store that is down: 503 before dispatch", "the store cannot be taken away from outside",
       "idempotency_model.has_one_effect_and_no_second_answer_when_the_store_fails")
unseen("N11", "a store that goes down after dispatch: the client gets its answer",
       "the store cannot be taken away from outside",
       "idempotency_model.has_one_effect_and_no_second_answer_when_the_store_fails")
unseen("N12", "a clock that jumps ends no lease and no record early", "the clock cannot be set from outside",
       "idempotency_record.ends_when_its_times_say_so")


@case("N13", "duplicates that prefer to wait get the first answer")
def waiting_duplicates(bench):
    run = Case(bench)
    with run.under_way() as first:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            waiting = [pool.submit(run.ask, fields=["Prefer: wait=15"]) for _ in range(8)]
            refused(run.ask(fields=["Prefer: wait=0"]), 409, "in-flight")
            run.held.set()
            told = first.response()
            for each in waiting:
                run.same(told, each.result())
    run.ran(1)


@case("N14", "a gateway that is told to stop finishes what is under way")
def graceful_stop(bench):
    bench.needs_process()
    run = Case(bench)
    with run.under_way() as connection:
        bench.process.send_signal(signal.SIGTERM)
        run.held.set()
        first = connection.response()
    check(first.status == 201, f"the client got {first.status}")
    bench.process.wait(PATIENCE)
    bench.start()
    run.same(first, run.ask())
    run.ran(1)


unseen("N15", "keyed requests in TLS early data are claimed or answered 425", "needs a client of TLS 1.3 early data",
       "not offering early data")


# ---- semantics ----

@case("S1", "the same key for another request: 422, and which part differs")
def reused(bench):
    for when in ("completed", "under way"):
        run = Case(bench)
        with contextlib.ExitStack() as stack:
            if when == "under way":
                stack.enter_context(run.under_way())
            else:
                check(run.ask().status == 201, "the first request did not run")
            others = {"body": {"body": b"other"}, "query": {"path": "?a=1"}, "path": {"path": "/other"},
                      "method": {"method": "PATCH"}}
            for part, other in others.items():
                response = run.ask(**other)
                check(response.status == 422, f"another {part} while {when} got {response.status}")
                check(part.encode() in response.body, f"the problem does not say that the {part} differs")
            run.ran(1)


@case("S2", "exact bytes count, or the JSON where the route says so")
def json_fingerprint(bench):
    one, two = b'{"a":1,"b":[2]}', b'{ "b": [2.0], "a": 1 }'
    run = Case(bench)
    run.ask(body=one)
    refused(run.ask(body=two), 422, "key-reused")
    run = Case(bench, "json")
    first = run.ask(body=one)
    run.same(first, run.ask(body=two))
    refused(run.ask(body=b'{"a":1,"b":[3]}'), 422, "key-reused")
    run.ran(1)


@case("S3", "after its time a result is remembered as expired, and does not run again")
def expired(bench):
    run = Case(bench, "ttl")
    first = run.ask()
    end = time.monotonic() + PATIENCE
    while (response := run.ask()).status == first.status and time.monotonic() < end:
        run.same(first, response)
        time.sleep(0.1)
    refused(response, 409, "result-expired")
    refused(run.ask(body=b"other"), 422, "key-reused")
    run.ran(1)


@case("S4", "the same key of another tenant is another key")
def tenants(bench):
    run = Case(bench)
    run.plan(lambda number, *_: answer(body=b"%d" % number))
    bodies = [run.ask(tenant=tenant).body for tenant in ("one", "two", "one", "two")]
    check(bodies == [b"1", b"2", b"1", b"2"], f"the answers were {bodies}")
    run.ran(2)


@case("S5", "where anonymous callers are refused, they claim nothing")
def anonymous(bench):
    run = Case(bench, "no-anonymous")
    check(run.ask(tenant=None).status in (400, 401, 403), "an anonymous caller was let in")
    check(run.ask().status == 201, "a known caller was not")
    run.ran(1)


@case("S6", "who has lost a permission gets no replay")
def permission(bench):
    run = Case(bench, "authorised")
    first = run.ask(tenant="allowed")
    check(first.status == 201, f"the token 'allowed' got {first.status}")
    check(run.ask(tenant="forbidden").status in (401, 403), "the token 'forbidden' was let in")
    run.ran(1)


@case("S7", "a refusal by quota claims nothing; a replay needs no quota")
def quota(bench):
    run = Case(bench, "quota")
    first = run.ask(tenant=run.token)
    check(first.status == 201, f"the first got {first.status}")
    other = run.new_key()
    check(run.ask(key=other, tenant=run.token).status == 429, "the quota is not one request")
    run.same(first, run.ask(tenant=run.token))
    again = run.ask(key=other, tenant=run.token)
    check(again.status == 429 and not again.get("Idempotent-Replayed"), "the refusal was stored")
    run.ran(1)


@case("S8", "a key that is malformed is 400, never taken for none")
def malformed(bench):
    run = Case(bench)
    bad = {"empty": '""', "two lines": ['"a"', '"b"'], "the same twice": ['"a"', '"a"'], "too long": '"' + "k" * 300 + '"',
           "a control character": '"a\tb"', "not ASCII": '"\xe4"', "blank": [" ", ""]}
    if not bench.arguments.bare_keys:
        bad |= {"an integer": "1", "a token": "abc", "a list": '"a", "b"', "no end": '"abc'}
    for what, key in bad.items():
        response = run.ask(key=key)
        check(response.status == 400, f"a key that is {what} got {response.status}")
    run.ran(0)
    if not bench.arguments.bare_keys:
        first = run.ask()
        run.same(first, run.ask(key=run.key + ";a=1"))
        run.ran(1)


@case("S9", "a key is missing where it is required: 400 with a link to the documentation")
def missing(bench):
    run = Case(bench)
    response = run.ask(key="")
    if response.status == 201:
        raise NotApplicable("keys are not required at the base URL")
    refused(response, 400, "key-missing")
    check(re.search(r'rel="?describedby', response.get("Link") or ""), "no Link to the documentation")
    run.ran(0)


@case("S10", "a GET with a key passes and is not stored")
def safe_methods(bench):
    run = Case(bench)
    run.plan(lambda number, *_: answer(200, b"%d" % number))
    check([run.ask(method="GET").body for _ in range(2)] == [b"1", b"2"], "the second GET was not forwarded")


@case("S11", "content that is too large: 413 before anything is claimed")
def large_content(bench):
    run = Case(bench)
    size = bench.arguments.max_body + 1
    for named in ({"body": b"x" * size}, {"chunks": [b"x" * 65536] * (size // 65536 + 1)}):
        with run.connect() as connection:
            try:
                connection.send(run.request(**named))
            except OSError:
                pass  # it need not read all of it
            try:
                response = connection.response()
            except Closed:
                check(False, "closed without an answer")
        check(response.status == 413, f"got {response.status}")
    run.ran(0)
    check(run.ask().status == 201, "the key cannot be used afterwards")


@case("S12", "chunks do not matter, the content does")
def chunked(bench):
    run = Case(bench)
    first = run.ask(chunks=[b"hello", b"world"])
    check(run.origin.seen[run.token][0].body == b"helloworld", "other content was forwarded")
    run.same(first, run.ask(chunks=[b"h", b"elloworld"]))
    run.same(first, run.ask(body=b"helloworld"))
    refused(run.ask(chunks=[b"hello"]), 422, "key-reused")
    run.ran(1)


@case("S13", "coded content is forwarded and compared as it was sent")
def coded_content(bench):
    run = Case(bench)
    coded = gzip.compress(b"content", mtime=0)
    fields = ["Content-Encoding: gzip"]
    first = run.ask(body=coded, fields=fields)
    check(run.origin.seen[run.token][0].body == coded, "other content was forwarded")
    run.same(first, run.ask(body=coded, fields=fields))
    refused(run.ask(body=gzip.compress(b"content", 1, mtime=1), fields=fields), 422, "key-reused")
    run.ran(1)


@case("S14", "Expect: 100-continue is met, on a first request and on a retry")
def expectation(bench):
    run = Case(bench)
    responses = []
    for _ in range(2):
        with run.connect() as connection:
            head, _, content = run.request(fields=["Expect: 100-continue"]).partition(b"\r\n\r\n")
            connection.send(head + b"\r\n\r\n")
            message = connection.head()
            if message.status == 100:
                connection.send(content)
                message = connection.response()
            else:
                message.body = connection.content(message, True)
            responses.append(message)
    check(responses[0].status == 201, f"the first got {responses[0].status}")
    run.same(*responses)
    run.ran(1)


@case("S15", "103 is passed on in the first run and not replayed")
def early_hints(bench):
    run = Case(bench)
    run.plan(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + answer())
    first = run.ask()
    check(first.status == 201, f"got {first.status}")
    check([each.status for each in first.interim] in ([103], []), "other interim responses")
    again = run.ask()
    run.same(first, again)
    check(not again.interim, "the 103 was replayed")
    check(first.interim, "the 103 was not passed on")


@case("S16", "what is too large to be kept is delivered, and never run again")
def large_answer(bench):
    large = bytes(range(256)) * ((bench.arguments.max_response >> 8) + 16)
    events = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n6\r\ndata:\n\r\n0\r\n\r\n"
    for reply, body in ((answer(200, large), large), (events, b"data:\n")):
        run = Case(bench)
        run.plan(reply)
        first = run.ask()
        check(first.status == 200 and first.body == body, "the first answer was not delivered whole")
        again = run.ask()
        if again.status == 200:
            run.same(first, again)
        else:
            refused(again, 409, "response-not-replayable")
        run.ran(1)


@case("S17", "cookies, challenges and fields of the connection are not replayed")
def dropped_fields(bench):
    run = Case(bench)
    secret = ["Set-Cookie: s=1", "Authentication-Info: a=b", "Alt-Svc: clear", "WWW-Authenticate: Basic realm=a"]
    run.plan(answer(fields=[*secret, "Connection: X-Hop", "X-Hop: 1", "X-Kept: 1"]))
    first, again = run.ask(), run.ask()
    run.same(first, again)
    for name in ("Set-Cookie", "Authentication-Info", "Alt-Svc", "WWW-Authenticate", "X-Hop"):
        check(again.get(name) is None, f"{name} was replayed")
    check(first.get("Set-Cookie") == "s=1" and again.get("X-Kept") == "1", "a field was lost")
    run.ran(1)


@case("S18", "Date is that of the first answer")
def date(bench):
    run = Case(bench)
    run.plan(answer(fields=["Date: Mon, 01 Jan 2024 00:00:00 GMT"]))
    first, again = run.ask(), run.ask()
    check(first.get("Date") == again.get("Date") == "Mon, 01 Jan 2024 00:00:00 GMT", f"Date is {again.get('Date')}")


@case("S19", "the stored representation is returned with its Vary, whatever the retry accepts")
def negotiated(bench):
    run = Case(bench)
    coded = gzip.compress(b"content", mtime=0)
    run.plan(answer(200, coded, ["Content-Encoding: gzip", "Vary: Accept-Encoding"]))
    first = run.ask(fields=["Accept-Encoding: gzip"])
    again = run.ask(fields=["Accept-Encoding: gzip, br", "Accept-Language: de"])
    run.same(first, again)
    check(again.get("Vary") == "Accept-Encoding" and again.get("Content-Encoding") == "gzip", "its fields were lost")
    run.ran(1)


@case("S20", "a replay is equal byte for byte, and field by field in order")
def exact(bench):
    for status, body in ((200, bytes(range(256)) * 3), (200, b""), (204, b"")):
        run = Case(bench)
        run.plan(answer(status, body, ["X-B: 1", "X-A: 2", "X-B: 3", "Location: /a"]))
        first, again = run.ask(), run.ask()
        check(first.status == status and first.body == body, "the first answer was changed")
        run.same(first, again)

        def own(message):
            return [(name.lower(), value) for name, value in message.fields if name.lower() in ("x-a", "x-b", "location")]
        check(own(again) == own(first) and len(own(first)) == 4, f"the fields were {own(again)}")
        run.ran(1)


@case("S21", "final answers are stored, refusals given back, and 502 to 504 are an unknown outcome")
def statuses(bench):
    for status in (200, 202, 302, 400, 404, 410, 500, 501):
        run = Case(bench)
        run.plan(answer(status))
        run.same(run.ask(), run.ask())
        run.ran(1)
    for status in (401, 403, 407, 408, 421, 425, 429):
        run = Case(bench)
        run.plan(lambda number, *_, status=status: answer(status if number == 1 else 201))
        check(run.ask().status == status, f"{status} was not passed on")
        second = run.ask()
        check(second.status == 201, f"after {status} the retry got {second.status}")
        run.ran(2)
    for status in (502, 503, 504):
        run = Case(bench)
        run.plan(answer(status))
        check(run.ask().status >= 500, f"{status} was not passed on")
        refused(run.ask(), 409, "outcome-unknown")
        run.ran(1)


@case("S22", "409 and 422 of the origin server are stored like other answers")
def own_conflicts(bench):
    for status in (409, 422):
        run = Case(bench)
        run.plan(answer(status, b"mine"))
        first = run.ask()
        check(first.status == status and first.body == b"mine", f"{status} was not passed on")
        run.same(first, run.ask())
        run.ran(1)


@case("S23", "redirects are returned, not followed")
def redirects(bench):
    run = Case(bench)
    run.plan(answer(307, b"", [f"Location: /{run.token}/elsewhere"]))
    first = run.ask()
    check(first.status == 307, f"got {first.status}")
    run.same(first, run.ask())
    run.ran(1)


unseen("S24", "a flood of keys meets a bound, and evicts no key that lives", "the bound of a default installation is too far away",
       "store_contract.takes_no_new_key_when_it_is_full_and_loses_none")


@case("S25", "a hot key: two hundred duplicates are answered while the first runs, and after it")
def hot_key(bench):
    run = Case(bench)
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        with run.under_way() as first:
            for response in pool.map(lambda _: run.ask(), range(200)):
                refused(response, 409, "in-flight")
            run.held.set()
            told = first.response()
        for response in pool.map(lambda _: run.ask(), range(200)):
            run.same(told, response)
    run.ran(1)


unseen("S26", "records are judged by the rule they were made with", "the configuration cannot be changed from outside",
       "idempotency_decide.asks_for_the_fingerprint_by_the_rule_of_the_record")


@case("S27", "the origin server gets the key as it came, and the number of the attempt")
def forwarded(bench):
    run = Case(bench)
    run.ask(fields=["Idempotency-Attempt: 7"])
    seen = run.origin.seen[run.token][0]
    check(seen.get("Idempotency-Key") == run.key, f"it got {seen.get('Idempotency-Key')}")
    check(seen.get("Idempotency-Attempt") == "1", f"the attempt is {seen.get('Idempotency-Attempt')}")


# ---- the run ----

def address(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="such as C3 or S21; all of them when none is named")
    parser.add_argument("--base-url", required=True, metavar="URL", help="http://HOST:PORT/PATH of a route that requires keys")
    parser.add_argument("--origin", type=address, default=("127.0.0.1", 0), metavar="HOST:PORT",
                        help="where the origin server of this program listens (a free port, which is printed)")
    parser.add_argument("--variant", action="append", default=[], metavar="NAME=URL",
                        help="a route with other settings: json, ttl, timeout, quota, no-anonymous, authorised")
    parser.add_argument("--start", metavar="COMMAND", help="starts the implementation, in the foreground; {origin} is the "
                        "URL of the origin server. Needed for cases that kill it")
    parser.add_argument("--bare-keys", action="store_true", help="send abc, not \"abc\"")
    parser.add_argument("--marker", default="Idempotent-Replayed", help="the field that is true in replays, or none (%(default)s)")
    parser.add_argument("--max-body", type=int, default=1 << 20, help="octets (%(default)s)")
    parser.add_argument("--max-response", type=int, default=1 << 20, help="octets (%(default)s)")
    arguments = parser.parse_args()
    for each in arguments.cases:
        if each not in CASES:
            parser.error(f"there is no case '{each}'")
    bench = Bench(arguments)
    print(f"origin server: {bench.origin.url}; put the implementation at {arguments.base_url} in front of it", flush=True)
    if arguments.start:
        bench.start()
    else:
        await_answer(arguments.base_url)
    try:
        return run_cases(bench, [each for each in CASES if not arguments.cases or each in arguments.cases])
    finally:
        if bench.process is not None and bench.process.poll() is None:
            bench.stop(signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
