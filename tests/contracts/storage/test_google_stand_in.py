"""The stand-in refuses what Google refuses; a bucket that takes anything would prove nothing."""

from collections.abc import Mapping
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from tests.contracts.storage.backends.google import Google
from tests.contracts.storage.backends.google_stand_in import TOKEN

_NONE: Mapping[str, str] = {}
_SMALL_ETAG = "0cc175b9c0f1b6a831c399e269772661"  # of the letter a


def _asked(
    google: Google, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] = _NONE
) -> tuple[int, str]:
    request = Request(
        f"{google.endpoint}/{path}",
        method=method,
        data=body if method in ("PUT", "POST") else None,
        headers={"Authorization": f"Bearer {TOKEN}", **headers},
    )
    try:
        with urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()


@pytest.fixture
def bucket(google: Google) -> str:
    return google.address().split("/")[2]


@pytest.mark.parametrize(
    ("asked", "headers", "refusal"),
    [
        ("PUT a", {"x-goog-if-generation-match": "0"}, "412 PreconditionFailed"),
        ("PUT a", {"x-goog-if-generation-match": "17"}, "412 PreconditionFailed"),
        ("PUT b", {"x-goog-if-generation-match": "17"}, "412 PreconditionFailed"),
        ("PUT b", {"x-goog-if-generation-match": '"an-etag"'}, "400 InvalidArgument"),
        ("PUT b", {"if-match": '"an-etag"'}, "501 NotImplemented"),
        ("PUT b", {"Authorization": "Bearer another"}, "401 AuthenticationRequired"),
        ("GET b", {}, "404 NoSuchKey"),
        ("GET a", {"range": "bytes=1-"}, "416 InvalidRange"),
        ("GET a?acl", {}, "501 NotImplemented"),
        ("DELETE b", {}, "404 NoSuchKey"),
        ("PUT b?partNumber=1&uploadId=none", {}, "404 NoSuchUpload"),
    ],
)
def test_the_stand_in_refuses(google: Google, bucket: str, asked: str, headers: dict[str, str], refusal: str) -> None:
    assert _asked(google, "PUT", f"{bucket}/a", b"1")[0] == 200
    method, path = asked.split()
    status, code = refusal.split()
    told, body = _asked(google, method, f"{bucket}/{path}", headers=headers)
    assert (str(told), f"<Code>{code}</Code>" in body) == (status, True), body
    assert _asked(google, "GET", f"{bucket}/a") == (200, "1")
    assert _asked(google, "GET", f"{bucket}/b")[0] == 404


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ([], "MalformedXML"),
        ([(1, _SMALL_ETAG), (2, _SMALL_ETAG)], "EntityTooSmall"),
        ([(2, _SMALL_ETAG), (1, _SMALL_ETAG)], "InvalidPartOrder"),
        ([(1, _SMALL_ETAG), (3, _SMALL_ETAG)], "InvalidPart"),
        ([(1, "0" * 32)], "InvalidPart"),
    ],
)
def test_parts_that_make_no_whole_are_no_object(
    google: Google, bucket: str, parts: list[tuple[int, str]], code: str
) -> None:
    begun = _asked(google, "POST", f"{bucket}/a?uploads")[1]
    upload = begun.partition("<UploadId>")[2].partition("</UploadId>")[0]
    for number in (1, 2):
        assert _asked(google, "PUT", f"{bucket}/a?partNumber={number}&uploadId={upload}", b"a")[0] == 200
    listed = "".join(f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>" for number, tag in parts)
    body = f"<CompleteMultipartUpload>{listed}</CompleteMultipartUpload>".encode()
    status, said = _asked(google, "POST", f"{bucket}/a?uploadId={upload}", body)
    assert (status, f"<Code>{code}</Code>" in said) == (400, True), said
    assert _asked(google, "GET", f"{bucket}/a")[0] == 404
