"""What a chat loads before its prompt: a person waits for it."""

import subprocess
import sys


def test_a_chat_starts_without_the_clients_of_clusters_and_vendors() -> None:
    code = "import sys, hummingbird.app.chat_command; print(*sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    loaded = set(ran.stdout.split())
    assert "hummingbird.chat.terminal" in loaded
    unneeded = {"lightkube", "boto3", "opentelemetry.sdk", "sentry_sdk", "gitlab", "fastapi", "starlette", "rich"}
    own = ("evidence.report_preview", "evidence.logs.log_preview", "queues.sqs", "storage.bucket_sessions")
    unneeded |= {f"hummingbird.{name}" for name in own}
    assert loaded.isdisjoint(unneeded)
