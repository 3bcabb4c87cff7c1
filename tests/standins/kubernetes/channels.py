"""The remote command protocol: one WebSocket, a channel number before every message, a Status at the end."""

import json

from hummingbird.lab.kubernetes_api.access import Raw

V5 = "v5.channel.k8s.io"
V4 = "v4.channel.k8s.io"
STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255


def message(channel: int, content: bytes) -> bytes:
    return bytes((channel,)) + content


def success() -> bytes:
    return message(ERROR, json.dumps({"metadata": {}, "status": "Success"}).encode())


def exit_status(code: int) -> bytes:
    status: Raw = {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: command terminated with exit code {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
    return message(ERROR, json.dumps(status).encode())


def internal_error(sentence: str) -> bytes:
    status: Raw = {
        "metadata": {},
        "status": "Failure",
        "message": f"Internal error occurred: {sentence}",
        "reason": "InternalError",
        "details": {"causes": [{"message": sentence}]},
        "code": 500,
    }
    return message(ERROR, json.dumps(status).encode())
