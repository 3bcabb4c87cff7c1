"""`python -m benchmarks.web.audience BASE FILE`: looks at live pages, one connection for each path in FILE, until its
standard input ends. Says `ready` when all are open, and at the end how many bytes came."""

import asyncio
import sys
from pathlib import Path
from urllib.parse import urlsplit


async def look(host: str, port: int, path: str, opened: asyncio.Semaphore) -> int:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nAccept: text/event-stream\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in head.split(b"\r\n")[0], head
    opened.release()
    seen = 0
    try:
        while chunk := await reader.read(65536):
            seen += len(chunk)
    except asyncio.CancelledError:
        pass
    finally:
        writer.close()
    return seen


async def main(base: str, paths: list[str]) -> None:
    where, opened = urlsplit(base), asyncio.Semaphore(0)
    assert where.hostname is not None
    assert where.port is not None
    tasks = [asyncio.create_task(look(where.hostname, where.port, path, opened)) for path in paths]
    for _ in tasks:
        await opened.acquire()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        task.cancel()
    print(sum(await asyncio.gather(*tasks)), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]).read_text().split()))
