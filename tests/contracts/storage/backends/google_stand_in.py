"""A strict stand-in of Google's Cloud Storage, XML API: `python google_stand_in.py PORT`, in memory, on loopback.

Refuses what Google refuses (https://cloud.google.com/storage/docs/xml-api, …/request-preconditions,
…/multipart-uploads) and, by 501, whatever it does not know: nothing is passed over in silence. Google's limit of about
one write a second of one name is not kept here; tests would take minutes.
"""

import hashlib
import re
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from itertools import count
from time import time, time_ns
from xml.etree import ElementTree
from xml.sax.saxutils import escape

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

TOKEN = "a-token-of-the-stand-in"
LOSING = "/_stand_in/lose-the-next-answer"
_LEAST_PART = 5 * 1024 * 1024
_PAGE = 1000
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,61}[a-z0-9]")
_RANGE = re.compile(r"bytes=(\d+)-(\d*)")
_LISTING = {"list-type", "prefix", "continuation-token", "start-after", "max-keys"}


class Refused(Exception):
    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status = status
        self.code = code


@dataclass(frozen=True)
class Held:
    content: bytes
    e_tag: str
    generation: int
    changed_at: float

    def headers(self) -> dict[str, str]:
        return {
            "ETag": self.e_tag,
            "x-goog-generation": str(self.generation),
            "x-goog-metageneration": "1",
            "Last-Modified": formatdate(self.changed_at, usegmt=True),
        }


@dataclass
class Upload:
    name: str
    parts: dict[int, bytes] = field(default_factory=dict)


@dataclass
class Bucket:
    objects: dict[str, Held] = field(default_factory=dict)
    uploads: dict[str, Upload] = field(default_factory=dict)


class StandIn:
    def __init__(self) -> None:
        self._buckets: dict[str, Bucket] = {}
        self._generations = count(time_ns() // 1000)  # of no object twice, deleted ones included
        self._upload_ids = count(1)
        self._losing = False

    async def answer(self, request: Request) -> Response:
        try:
            return await self._answered(request)
        except Refused as refused:
            body = f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{refused.code}</Code></Error>"
            return Response("" if request.method == "HEAD" else body, refused.status, media_type="application/xml")

    async def _answered(self, request: Request) -> Response:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            raise Refused(401, "AuthenticationRequired")
        if request.url.path == LOSING:
            self._losing = True
            return Response()
        name, _, key = request.path_params["path"].partition("/")
        if not key:
            return self._of_buckets(request, name)
        if len(key.encode()) > 1024 or set(key) & {"\r", "\n"}:
            raise Refused(400, "InvalidObjectName")
        verb = self._verb(request)
        body = await request.body()  # before anything is looked at: from here to the answer nobody comes between
        answer = verb(self._bucket(name), key, request, body)
        if self._losing and request.method in ("PUT", "POST"):
            self._losing = False
            raise Refused(503, "ServiceUnavailable")
        return answer

    def _verb(self, request: Request) -> "Callable[[Bucket, str, Request, bytes], Response]":
        verbs = {
            ("PUT", frozenset()): self._put,
            ("GET", frozenset()): self._get,
            ("HEAD", frozenset()): self._get,
            ("DELETE", frozenset()): self._delete,
            ("POST", frozenset({"uploads"})): self._begin,
            ("PUT", frozenset({"partNumber", "uploadId"})): self._put_part,
            ("POST", frozenset({"uploadId"})): self._complete,
            ("DELETE", frozenset({"uploadId"})): self._abort,
        }
        verb = verbs.get((request.method, frozenset(request.query_params.keys())))
        if verb is None:
            raise Refused(501, "NotImplemented")
        if request.method in ("PUT", "POST"):
            if not {"content-length", "transfer-encoding"} & set(request.headers.keys()):
                raise Refused(411, "MissingContentLength")
            allowed = {"x-goog-if-generation-match"} if verb == self._put else set()
            _refuse_other_conditions(request, allowed)
        return verb

    def _of_buckets(self, request: Request, name: str) -> Response:
        asked = set(request.query_params.keys())
        if request.method == "PUT" and not asked:
            if not _BUCKET.fullmatch(name):
                raise Refused(400, "InvalidBucketName")
            if name in self._buckets:
                raise Refused(409, "BucketNameUnavailable")
            self._buckets[name] = Bucket()
            return Response()
        if request.method == "GET" and asked == {"uploads"}:
            return _xml("ListMultipartUploadsResult", *(_uploading(*one) for one in self._bucket(name).uploads.items()))
        if request.method == "GET" and "list-type" in asked and asked <= _LISTING:
            return _listing(self._bucket(name), request)
        raise Refused(501, "NotImplemented")

    def _bucket(self, name: str) -> Bucket:
        if name not in self._buckets:
            raise Refused(404, "NoSuchBucket")
        return self._buckets[name]

    def _put(self, bucket: Bucket, key: str, request: Request, body: bytes) -> Response:
        wanted = request.headers.get("x-goog-if-generation-match")
        there = bucket.objects.get(key)
        if wanted is not None and not wanted.isdecimal():
            raise Refused(400, "InvalidArgument")
        if wanted is not None and int(wanted) != (there.generation if there else 0):
            raise Refused(412, "PreconditionFailed")
        return Response(headers=self._hold(bucket, key, body, _e_tag(body)).headers())

    def _hold(self, bucket: Bucket, key: str, content: bytes, e_tag: str) -> Held:
        bucket.objects[key] = Held(content, e_tag, next(self._generations), time())
        return bucket.objects[key]

    def _get(self, bucket: Bucket, key: str, request: Request, body: bytes) -> Response:
        held = _there(bucket.objects, key, "NoSuchKey")
        if request.headers.get("if-match", held.e_tag) != held.e_tag:
            raise Refused(412, "PreconditionFailed")
        _refuse_other_conditions(request, {"if-match"})
        first, last, status = _range(request.headers.get("range"), len(held.content))
        headers = held.headers()
        if status == 206:
            headers["Content-Range"] = f"bytes {first}-{last}/{len(held.content)}"
        answer = Response(held.content[first : last + 1], status, headers)
        if request.method == "HEAD":
            answer.body = b""  # Content-Length stays what it would be
        return answer

    def _delete(self, bucket: Bucket, key: str, request: Request, body: bytes) -> Response:
        _there(bucket.objects, key, "NoSuchKey")
        _refuse_other_conditions(request, set())
        del bucket.objects[key]
        return Response(status_code=204)

    def _begin(self, bucket: Bucket, key: str, request: Request, body: bytes) -> Response:
        upload_id = f"upload-{next(self._upload_ids)}"
        bucket.uploads[upload_id] = Upload(key)
        return _xml("InitiateMultipartUploadResult", f"<Key>{escape(key)}</Key><UploadId>{upload_id}</UploadId>")

    def _put_part(self, bucket: Bucket, key: str, request: Request, body: bytes) -> Response:
        upload = _upload(bucket, key, request)
        number = request.query_params["partNumber"]
        if not number.isdecimal() or not 1 <= int(number) <= 10_000:
            raise Refused(400, "InvalidArgument")
        upload.parts[int(number)] = body
        return Response(headers={"ETag": _e_tag(body)})

    def _complete(self, bucket: Bucket, key: str, request: Request, body: bytes) -> Response:
        upload = _upload(bucket, key, request)
        numbers = _listed_parts(body, upload)
        parts = [upload.parts[number] for number in numbers]
        if any(len(part) < _LEAST_PART for part in parts[:-1]):
            raise Refused(400, "EntityTooSmall")
        content = b"".join(parts)
        e_tag = _e_tag(content, f"-{len(parts)}")
        held = self._hold(bucket, key, content, e_tag)
        del bucket.uploads[request.query_params["uploadId"]]
        answer = _xml("CompleteMultipartUploadResult", f"<Key>{escape(key)}</Key><ETag>{escape(e_tag)}</ETag>")
        answer.headers["x-goog-generation"] = str(held.generation)
        return answer

    def _abort(self, bucket: Bucket, key: str, request: Request, body: bytes) -> Response:
        _upload(bucket, key, request)
        del bucket.uploads[request.query_params["uploadId"]]
        return Response(status_code=204)


def _there(things: dict[str, Held], key: str, code: str) -> Held:
    if key not in things:
        raise Refused(404, code)
    return things[key]


def _upload(bucket: Bucket, key: str, request: Request) -> Upload:
    upload = bucket.uploads.get(request.query_params["uploadId"])
    if upload is None or upload.name != key:
        raise Refused(404, "NoSuchUpload")
    return upload


def _e_tag(content: bytes, end: str = "") -> str:
    return f'"{hashlib.md5(content).hexdigest()}{end}"'


def _refuse_other_conditions(request: Request, allowed: set[str]) -> None:
    """Those that would be passed over in silence are an error here."""
    conditions = {name for name in request.headers if name.startswith(("if-", "x-goog-if-", "x-goog-copy"))}
    if conditions - allowed:
        raise Refused(501, "NotImplemented")


def _range(asked: str | None, size: int) -> tuple[int, int, int]:
    """The first and the last byte, and the status."""
    if asked is None:
        return 0, size - 1, 200
    found = _RANGE.fullmatch(asked)
    if found is None:
        raise Refused(501, "NotImplemented")
    first, last = int(found[1]), int(found[2] or size - 1)
    if first >= size or last < first:
        raise Refused(416, "InvalidRange")
    return first, min(last, size - 1), 206


def _listed_parts(body: bytes, upload: Upload) -> list[int]:
    try:
        root = ElementTree.fromstring(body)
        listed = [(int(part.findtext("{*}PartNumber", "")), part.findtext("{*}ETag", "")) for part in root]
    except (ElementTree.ParseError, ValueError):
        raise Refused(400, "MalformedXML") from None
    numbers = [number for number, _ in listed]
    if not numbers:
        raise Refused(400, "MalformedXML")
    if numbers != sorted(set(numbers)):
        raise Refused(400, "InvalidPartOrder")
    for number, e_tag in listed:
        if number not in upload.parts or e_tag.strip('"') != _e_tag(upload.parts[number]).strip('"'):
            raise Refused(400, "InvalidPart")
    return numbers


def _listing(bucket: Bucket, request: Request) -> Response:
    asked = request.query_params
    most = asked.get("max-keys", str(_PAGE))
    if asked["list-type"] != "2" or not most.isdecimal():
        raise Refused(400, "InvalidArgument")
    after = asked.get("continuation-token") or asked.get("start-after", "")
    keys = sorted(key for key in bucket.objects if key.startswith(asked.get("prefix", "")) and key > after)
    page = keys[: min(int(most), _PAGE)]
    more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if len(keys) > len(page) else ""
    truncated = f"<IsTruncated>{str(bool(more)).lower()}</IsTruncated>"
    return _xml("ListBucketResult", truncated, more, *(_listed(key, bucket.objects[key]) for key in page))


def _listed(key: str, held: Held) -> str:
    changed = datetime.fromtimestamp(held.changed_at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return (
        f"<Contents><Key>{escape(key)}</Key><Generation>{held.generation}</Generation>"
        f"<LastModified>{changed}</LastModified><ETag>{escape(held.e_tag)}</ETag>"
        f"<Size>{len(held.content)}</Size></Contents>"
    )


def _uploading(upload_id: str, upload: Upload) -> str:
    return f"<Upload><Key>{escape(upload.name)}</Key><UploadId>{upload_id}</UploadId></Upload>"


def _xml(root: str, *inside: str) -> Response:
    body = f"<?xml version='1.0' encoding='UTF-8'?><{root}>{''.join(inside)}</{root}>"
    return Response(body, media_type="application/xml")


def main() -> None:
    answer: Callable[[Request], Awaitable[Response]] = StandIn().answer
    methods = ["GET", "HEAD", "PUT", "POST", "DELETE"]
    door = Starlette(routes=[Route("/{path:path}", answer, methods=methods)])
    uvicorn.run(door, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning", lifespan="off")


if __name__ == "__main__":
    main()
