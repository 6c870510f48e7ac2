"""A TCP relay on 127.0.0.1 that delays both ways by half the round trip asked for: a network for one machine.

Runs as a process of its own (`python -m benchmarks.relay PORT MS`), prints the port that it listens on, and ends
with its stdin.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys


async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
    """Carry bytes on, each piece `delay` seconds after it came; pieces stay in order and overlap in time."""
    pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    async def receive() -> None:
        while True:
            data = await reader.read(65536)
            await pieces.put((loop.time() + delay, data))
            if not data:
                return

    receiving = asyncio.create_task(receive())
    try:
        while True:
            due, data = await pieces.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            if not data:
                return
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        receiving.cancel()
        writer.close()


async def serve(port: int, round_trip: float) -> None:
    """Relay to 127.0.0.1:`port` until stdin ends."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        onward_reader, onward_writer = await asyncio.open_connection("127.0.0.1", port)
        for end in (writer, onward_writer):
            end.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(asyncio.CancelledError):  # the relay ends while a connection is open
            await asyncio.gather(
                pipe(reader, onward_writer, round_trip / 2),
                pipe(onward_reader, writer, round_trip / 2),
                return_exceptions=True,
            )

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2]) / 1000))
