"""One door for webhooks, in a process of its own: `python -m benchmarks.service.doors ours|bare|normal FOLDER`.

Prints its port, and ends when its standard input does. `bare` keeps each body with one INSERT and its commit, as
durable as ours: write-ahead log, synchronous=FULL. `normal` is the same with synchronous=NORMAL: what it has
acknowledged may be gone after a power cut. Nobody works off what comes in.
"""

import asyncio
import sqlite3
import sys
import time
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from benchmarks.service.process import SECRET
from hummingbird.app.http_server import BoundedHttpServer
from hummingbird.queues.sqlite_queue import SqliteQueue
from hummingbird.service.event_ingress import EventIngress
from hummingbird.service.webhook import WEBHOOK_PATH, create_webhook_app, create_webhook_auth
from hummingbird.storage.folder_objects import FolderObjectStore

FILE = "queue.sqlite"
TABLES = {"ours": "messages", "bare": "kept", "normal": "kept"}


def ours(folder: Path) -> Starlette:
    queue = SqliteQueue(folder / FILE, 60)
    return create_webhook_app(
        create_webhook_auth(time.time, SECRET, ""),
        EventIngress(queue, FolderObjectStore(folder / "objects"), time.time),
    )


def bare(folder: Path, synchronous: str = "FULL") -> Starlette:
    connection = sqlite3.connect(folder / FILE, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("CREATE TABLE kept (place INTEGER PRIMARY KEY, body TEXT NOT NULL)")

    async def receive(request: Request) -> Response:
        body = await request.body()
        connection.execute("INSERT INTO kept VALUES (NULL, ?)", (body.decode(),))
        return JSONResponse({"status": "queued"}, 202)

    return Starlette(routes=[Route(WEBHOOK_PATH, receive, methods=["POST"])])


def normal(folder: Path) -> Starlette:
    return bare(folder, "NORMAL")


async def serve(kind: str, folder: Path) -> None:
    door = BoundedHttpServer({"ours": ours, "bare": bare, "normal": normal}[kind](folder), "127.0.0.1", 0)
    print(door.port, flush=True)
    running = asyncio.create_task(door.run())
    await asyncio.to_thread(sys.stdin.read)
    door.stop()
    await running


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2])))
