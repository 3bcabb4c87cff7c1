"""Webhooks to receivers that hang, and what else a hook may be told to send."""

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hummingbird.lab.gitlab import webhook_delivery as room
from hummingbird.lab.gitlab.server import GitLabLab
from hummingbird.lab.gitlab.webhook_delivery import WebhookSender, render_template, webhook_sender
from tests.lab.gitlab.receiving import Receiver
from tests.lab.gitlab.written_case import Person, served

SLOW_HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"


class Stubborn:
    """Takes connections, says `first` and never ends its answer: as `drop_by_drop`, or not a word more."""

    def __init__(self, first: bytes = b"", drop_by_drop: bytes = b"") -> None:
        self.reached = threading.Event()
        self._over = threading.Event()
        self._first, self._drop = first, drop_by_drop
        self._door = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._door.getsockname()[1]}/"

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while not self._over.is_set():
                client, _ = self._door.accept()
                with client, contextlib.suppress(OSError):
                    client.sendall(self._first)
                    self.reached.set()
                    while not self._over.wait(0.02):
                        client.sendall(self._drop)

    def close(self) -> None:
        self._over.set()
        with contextlib.suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()
        self._thread.join()


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[GitLabLab]:
    with served(tmp_path) as lab:
        yield lab


@pytest.fixture
def hooks(lab: GitLabLab) -> WebhookSender:
    return webhook_sender(lab.world)


@pytest.fixture
def person(lab: GitLabLab) -> Iterator[Callable[[str], Person]]:
    with contextlib.ExitStack() as stack:
        yield lambda token: stack.enter_context(contextlib.closing(Person(lab, token)))


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with contextlib.closing(Receiver()) as found:
        yield found


@pytest.mark.parametrize(("first", "drop"), [(b"", b""), (b"HTTP/1.1 200", b"x"), (SLOW_HEAD, b"x")])
def test_facts_1_an_answer_that_does_not_end_in_time_is_a_failure(
    hooks: WebhookSender, person: Callable[[str], Person], first: bytes, drop: bytes
) -> None:
    hooks.timeout_s = 0.2
    with contextlib.closing(Stubborn(first, drop)) as stubborn:
        hook = hooks.subscribe(stubborn.url, "note_events")
        person("bot").mr.notes.create({"body": "x"})
        hooks.wait_until_sent()
    assert (hook.failures, hooks.deliveries[0].status) == (1, None)
    assert hooks.deliveries[0].problem == "The receiver did not answer in time."


def test_a_receiver_that_hangs_does_not_hold_the_lab_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is waited for until its own time is up: the problem of each would be another then."""
    monkeypatch.setattr(room, "CLOSING_S", 0.05)
    with contextlib.closing(Stubborn()) as stubborn, served(tmp_path) as lab:
        hooks = webhook_sender(lab.world)
        hooks.subscribe(stubborn.url, "note_events")
        bot = Person(lab, "bot")
        for number in range(10):
            bot.mr.notes.create({"body": f"note {number}"})
        bot.close()
        assert stubborn.reached.wait(60)
    assert [each.problem for each in hooks.deliveries] == ["The lab was closed before it was sent."] * 10
    assert not [each for each in threading.enumerate() if each.name == "lab-hooks"]


def test_what_happens_after_the_hooks_were_closed_is_not_sent(
    hooks: WebhookSender, receiver: Receiver, person: Callable[[str], Person]
) -> None:
    hooks.subscribe(receiver.url, "note_events")
    hooks.close()
    person("bot").mr.notes.create({"body": "too late"})
    hooks.wait_until_sent()
    assert (receiver.got, hooks.deliveries[0].problem) == ([], "The lab was closed before it was sent.")
    assert not [each for each in threading.enumerate() if each.name == "lab-hooks"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999/", "http://127.0.0.1:1/ä b", "http://[::1", "http://"])
def test_an_address_that_nobody_can_ask_is_a_failure_and_the_next_one_is_asked(
    hooks: WebhookSender, receiver: Receiver, person: Callable[[str], Person], url: str
) -> None:
    unusable = hooks.subscribe(url, "note_events")
    hooks.subscribe(receiver.url, "note_events")
    person("bot").mr.notes.create({"body": "x"})
    hooks.wait_until_sent()
    assert (unusable.failures, len(receiver.got)) == (1, 1)


@pytest.mark.thorough
def test_facts_1_a_hook_may_send_headers_of_its_own(
    hooks: WebhookSender, receiver: Receiver, person: Callable[[str], Person]
) -> None:
    maintainer = person("maintainer")
    own = [{"key": "X-Mine", "value": "secret"}]
    made = maintainer.ask("POST", "/hooks", url=receiver.url, note_events=True, custom_headers=own)
    assert made.json()["custom_headers"] == [{"key": "X-Mine"}]
    maintainer.mr.notes.create({"body": "x"})
    hooks.wait_until_sent()
    assert receiver.got[0][0]["X-Mine"] == "secret"
    many = [{"key": f"X-{number}", "value": ""} for number in range(21)]
    assert maintainer.ask("POST", "/hooks", url=receiver.url, custom_headers=many).status_code == 422
    assert maintainer.ask("POST", "/hooks", url=receiver.url, custom_headers=["x"]).status_code == 400


@pytest.mark.thorough
def test_facts_1_a_hook_may_send_a_body_of_its_own(
    hooks: WebhookSender, receiver: Receiver, person: Callable[[str], Person]
) -> None:
    maintainer = person("maintainer")
    template = '{"said":"{{object_attributes.note}}","where":{{project.id}},"not":"{{ nothing.there }}"}'
    given = {"url": receiver.url, "note_events": True, "custom_webhook_template": template}
    hook = maintainer.ask("POST", "/hooks", **given).json()
    maintainer.mr.notes.create({"body": 'say "hi"'})
    hooks.wait_until_sent()
    assert json.loads(receiver.got[0][1]) == {"said": 'say "hi"', "where": 101, "not": ""}
    maintainer.ask("PUT", f"/hooks/{hook['id']}", custom_webhook_template='{"a":{{nothing}}}')
    maintainer.mr.notes.create({"body": "x"})
    hooks.wait_until_sent()
    assert (len(receiver.got), "template" in hooks.deliveries[1].problem) == (1, True)
    assert maintainer.ask("POST", "/hooks", **(given | {"custom_webhook_template": "x" * 4_097})).status_code == 422


def test_a_template_reads_lists_by_number_and_keeps_what_is_no_text() -> None:
    payload = {"labels": [{"title": "bug"}], "draft": False}
    made = render_template('{"first":"{{labels.0.title}}","second":"{{labels.1.title}}","draft":{{draft}}}', payload)
    assert json.loads(made) == {"first": "bug", "second": "", "draft": False}


@pytest.mark.thorough
def test_facts_1_what_is_done_because_of_an_event_is_not_told_to_the_same_hook(
    lab: GitLabLab, hooks: WebhookSender, receiver: Receiver, person: Callable[[str], Person]
) -> None:
    hooks.subscribe(receiver.url, "note_events")
    bot = person("bot")
    bot.mr.notes.create({"body": "first"})
    hooks.wait_until_sent()
    event = receiver.got[0][0]["X-Gitlab-Event-UUID"]
    later = hooks.subscribe(receiver.url, "note_events")
    bot.client.headers["X-Gitlab-Event-UUID"] = event
    bot.mr.notes.create({"body": "because of it"})
    hooks.wait_until_sent()
    assert [each.hook_id == later.id for each in hooks.deliveries] == [False, True]
    assert receiver.got[1][0]["X-Gitlab-Event-UUID"] == event
    del bot.client.headers["X-Gitlab-Event-UUID"]
    bot.mr.notes.create({"body": "of itself"})
    hooks.wait_until_sent()
    assert len(receiver.got) == 4


@pytest.mark.thorough
def test_facts_1_a_chain_of_events_ends_after_a_hundred_hooks(
    hooks: WebhookSender, receiver: Receiver, person: Callable[[str], Person]
) -> None:
    for _ in range(100):
        hooks.subscribe(receiver.url).sent_event_ids.add("chain")
    hooks.subscribe(receiver.url, "note_events")
    bot = person("bot")
    bot.client.headers["X-Gitlab-Event-UUID"] = "chain"
    bot.mr.notes.create({"body": "x"})
    assert hooks.deliveries == []
