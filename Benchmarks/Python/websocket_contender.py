"""Python's `websockets` as a contender: get|idle URL file=PATH [NAME=VALUE ...]. It prints one line of JSON."""

import asyncio
import ctypes
import itertools
import json
import resource
import sys
import time

from websockets.asyncio.client import connect


def processor_seconds():
    """The processor time of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def main():
    """Runs a scenario."""
    scenario, url = sys.argv[1:3]
    values = dict(word.split("=", 1) for word in sys.argv[3:])
    connections, each, hosts = (int(values.get(name, 1)) for name in ("connections", "each", "hosts"))
    with open(values["file"], "rb") as file:
        content = file.read()
    messages = [content] if values["kind"] == "binary" else content.decode().splitlines()
    compression = "deflate" if "deflate" in values else None
    numbers = itertools.count()
    sockets = []

    async def open_socket():
        address = url.replace("127.0.0.1", f"127.0.0.{1 + next(numbers) % hosts}")
        return await connect(address, compression=compression, max_size=None)

    async def exchange(socket):
        message = messages[next(numbers) % len(messages)]
        await socket.send(message)
        reply = await socket.recv()
        if type(reply) is not type(message) or len(reply) != len(message):
            sys.exit("another message was returned")

    async def rush(socket, seconds):
        end, count = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            await exchange(socket)
            count += 1
        return count

    async def hold():
        for _ in range(each):
            sockets.append(await open_socket())
            await exchange(sockets[-1])

    async def pause(line):
        print(line, flush=True)
        await asyncio.to_thread(sys.stdin.readline)

    if scenario == "idle":
        await exchange(await open_socket())
        await pause("ready")
        await asyncio.gather(*(hold() for _ in range(connections)))
        await pause(f"open {len(sockets)}")
        ctypes.CDLL(None).malloc_trim(0)
        await pause("trimmed")
        return
    sockets = [await open_socket() for _ in range(connections)]
    await asyncio.gather(*(rush(socket, float(values["warm"])) for socket in sockets))
    start, used = time.monotonic(), processor_seconds()
    count = sum(await asyncio.gather(*(rush(socket, float(values["seconds"])) for socket in sockets)))
    outcome = {"count": count, "seconds": time.monotonic() - start, "cpu": processor_seconds() - used}
    print(json.dumps(outcome), flush=True)
    for socket in sockets:
        socket.transport.abort()


asyncio.run(main())
