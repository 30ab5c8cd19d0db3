#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A WebSocket server or client by Debian's python3-websockets; what each does is said in websocket.mjs.

usage: websocket.py server
       websocket.py client URL
       websocket.py check        whether the package is there
"""

import asyncio
import contextlib
import ssl
import sys

import websockets


async def answer(socket):
    # Any code but 1000 and 1001 is an exception.
    with contextlib.suppress(websockets.ConnectionClosed):
        async for content in socket:
            word, _, argument = content.partition(" ") if isinstance(content, str) else ("", "", "")
            if word == "ping":
                pong = await socket.ping(argument)
                await pong
                await socket.send(f"pong {argument}")
            elif word == "close":
                await socket.close(int(argument), "bye")
            else:
                await socket.send(content)


async def serve():
    async with websockets.serve(answer, "127.0.0.1", 0, subprotocols=["chat"], max_size=None) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.Future()


def expect_same(what, found, expected):
    if found != expected:
        sys.exit(f"{what}: {str(found)[:200]}")


def connect(url):
    options = {}
    if url.startswith("wss:"):
        options["ssl"] = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        options["ssl"].check_hostname = False
        options["ssl"].verify_mode = ssl.CERT_NONE
    return websockets.connect(url, subprotocols=["chat"], max_size=None, **options)


async def ask(url):
    async with connect(url) as socket:
        expect_same("protocol", socket.subprotocol, "chat")
        for text in ("hello", "", "ü", "x" * 125, "y" * 126, "z" * 70_000):
            await socket.send(text)
            expect_same("text", await socket.recv(), text)
        large = b"0123456789abcdef" * (1 << 18)
        await socket.send(large)
        expect_same("binary", await socket.recv(), large)
        await socket.send(["in ", "parts"])
        expect_same("fragments", await socket.recv(), "in parts")
        pong = await socket.ping("mine")
        await pong
        await socket.send("ping theirs")
        expect_same("ping", await socket.recv(), "pong theirs")
        await socket.close(4321, "done")
        expect_same("close by the client", (socket.close_code, socket.close_reason), (4321, "done"))
    for code in (1000, 1001, 3000, 4999):
        async with connect(url) as socket:
            await socket.send(f"close {code}")
            await socket.wait_closed()
            expect_same("close by the server", (socket.close_code, socket.close_reason), (code, "bye"))


if sys.argv[1] != "check":
    asyncio.run(serve() if sys.argv[1] == "server" else ask(sys.argv[2]))
