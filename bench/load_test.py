#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks read from their tools is read right."""

import argparse
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True

import instructions
import load


class Reading(unittest.TestCase):
    def test_takes_only_the_expected_kind_of_response_of_wrk_for_good(self):
        out = 'Running 1s test\nJSON {"requests":10,"secs":1.5,"refused":9,"failed":1,"p50":3,"p99":7,"p999":8,"longest":9}\n'
        run = {"requests": 10, "secs": 1.5, "p50": 3, "p99": 7, "p999": 8, "longest": 9}
        self.assertEqual(load.read_wrk(out, 200), {**run, "bad": 10})
        self.assertEqual(load.read_wrk(out, 429), {**run, "bad": 2})

    def test_takes_only_the_expected_status_of_h2load_for_good(self):
        log = "1794983784859672\t429\t30\n1794983784859679\t200\t10\n1794983784859680\t429\t20\n1794983784859690\t-1\t90\n"
        run = load.read_h2load(log, 2, 429)
        self.assertEqual(run, {"requests": 4, "secs": 2, "bad": 2, "p50": 30, "p99": 90, "p999": 90, "longest": 90})

    def test_ends_when_h2load_got_no_response(self):
        with self.assertRaises(SystemExit):
            load.read_h2load("", 1, 200)

    def test_finds_the_instructions_in_a_dump(self):
        self.assertEqual(instructions.read_callgrind("# callgrind format\nsummary: 7\n\nfn=(1)\n0 5\ntotals: 4711\n"), (4711, 0))

    def test_finds_the_allocations_in_a_dump(self):
        dump = ("fn=(1) serve\n0 5\ncfn=(2) malloc\ncalls=3 0 \n0 9\ncfn=(3) free\ncalls=5 0 \n0 9\n\n"
                "fn=(4) other\ncfi=(7)\ncfn=(2)\ncalls=4 0 \n0 9\ncfn=(5) malloc'2\ncalls=1 0 \n0 9\ntotals: 4711\n")
        self.assertEqual(instructions.read_callgrind(dump), (4711, 8))

    def test_tells_what_was_counted_since(self):
        self.assertEqual(load.grown({"200": 4, "404": 1}, {"200": 9, "404": 1, "503": 2}), {"200": 5, "503": 2})


class Writing(unittest.TestCase):
    def test_puts_folder_and_addresses_into_every_configuration(self):
        with tempfile.TemporaryDirectory() as folder:
            run = pathlib.Path(folder)
            load.Bench(argparse.Namespace(binary="tidegate"), run, "listen: @gateway@\nadmin: @admin@\ndata: @RUN@/data\n")
            for file in run.iterdir():
                self.assertNotRegex(file.read_text(), r"@[\w-]+@", file.name)
            self.assertEqual((run / "tidegate.yaml").read_text(), f"listen: {load.address('gateway')}\n"
                             f"admin: {load.address('admin')}\ndata: {run}/data\n")
            self.assertNotEqual(load.address("gateway"), load.address("admin"))

    def test_sends_the_numbers_of_fields_from_the_second_request_on(self):
        client = instructions.ClientHttp2("/refused")
        first, second = client.next(), client.next()
        self.assertEqual([*instructions.frames_in(first[24:])], [(4, 0, 0), (4, 1, 0), (8, 0, 0), (1, 5, 1)])
        self.assertEqual(second, b"\x00\x00\x05\x01\x05\x00\x00\x00\x03\x82\x86\xc0\xbf\xbe")
        self.assertFalse(client.is_response(instructions.frame(1, 4, 3), 200))
        self.assertTrue(client.is_response(instructions.frame(1, 4, 3) + instructions.frame(0, 1, 3, b"{}"), 200))

    def test_sends_one_key_again_or_each_key_once(self):
        again, others = instructions.ClientPost("/keyed"), instructions.ClientNewKeys("/keyed")
        self.assertEqual(again.next(), again.next())
        self.assertNotEqual(others.next(), others.next())
        self.assertTrue(others.next().endswith(b'Idempotency-Key: "key-00000003"\r\n\r\n' + instructions.BODY))


if __name__ == "__main__":
    unittest.main()
