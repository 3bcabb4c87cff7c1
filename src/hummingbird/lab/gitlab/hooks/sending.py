"""Webhooks: who subscribed to what, and sending it to them.

    hooks = hooks_of(world)
    hooks.subscribe("http://127.0.0.1:9/", "pipeline_events", "note_events", signing_token="whsec_…")
    …
    hooks.settle()
    hooks.deliveries[-1].status

One thread sends, in the order of what happened, so that the API answers meanwhile. Nothing is ever sent again by
itself (facts 1).
"""

import queue
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hummingbird.lab.gitlab.hooks.payloads import NEWER, Event, Release, events, headers
from hummingbird.lab.gitlab.hooks.posting import Post
from hummingbird.lab.gitlab.hooks.signing import signature
from hummingbird.lab.gitlab.hooks.templates import rendered
from hummingbird.lab.gitlab.records import Change, Project
from hummingbird.lab.gitlab.store import CAUSE, World

CLOSING_S = 3.0
# facts 1, from here on
TIMEOUT_S = 10.0
FAILURES_UNTIL_PAUSE, FAILURES_UNTIL_OFF = 4, 40
FIRST_PAUSE_S, LONGEST_PAUSE_S = 60.0, 24 * 3600.0
CHAIN_MOST = 100
CLOSED = "The lab was closed before it was sent."


@dataclass(slots=True)
class Hook:
    """`flags`: its subscriptions, such as confidential_note_events. `resting_until`: seconds, 0 while it works.
    `told`: the ids of the events that it was sent, by which GitLab knows a circle."""

    id: int
    project_id: int
    url: str
    created_at: str
    flags: set[str]
    token: str | None = None
    signing_token: str | None = None
    custom_headers: dict[str, str] = field(default_factory=dict)
    template: str | None = None
    uuid: str = field(default_factory=lambda: str(uuid.uuid4()))
    failures: int = 0
    resting_until: float = 0.0
    told: set[str] = field(default_factory=set)

    @property
    def off(self) -> bool:
        return self.failures >= FAILURES_UNTIL_OFF

    def alert(self, now: float) -> str:
        if self.off:
            return "disabled"
        return "temporarily_disabled" if self.resting_until > now else "executable"

    def answered(self, good: bool, now: float) -> None:
        """Count failures in a row; from the fourth on it rests, longer each time."""
        self.failures = 0 if good else self.failures + 1
        over = self.failures - FAILURES_UNTIL_PAUSE
        self.resting_until = 0.0 if over < 0 else now + min(FIRST_PAUSE_S * 2**over, LONGEST_PAUSE_S)


@dataclass(slots=True)
class Delivery:
    """`status` None: not sent yet, or no answer; then `problem` says which."""

    id: int
    hook_id: int
    event: str
    headers: dict[str, str]
    body: bytes
    status: int | None = None
    problem: str = ""
    resent: bool = False


class Hooks:
    """`clock` gives the time that is signed and by which hooks rest. `resting`: whether failing ones do, as on
    gitlab.com; a GitLab of one's own goes on."""

    def __init__(self, world: World, *, release: Release = NEWER, clock: Callable[[], float] = time.time) -> None:
        self.world = world
        self.release = release
        self.clock = clock
        self.resting = True
        self.timeout_s = TIMEOUT_S
        self.hooks: list[Hook] = []
        self.deliveries: list[Delivery] = []
        self._waiting: queue.Queue[tuple[Hook, Delivery] | None] = queue.Queue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._post: Post | None = None
        self._closed = self._hurried = False

    def subscribe(
        self,
        url: str,
        *flags: str,
        project: Project | None = None,
        token: str | None = None,
        signing_token: str | None = None,
    ) -> Hook:
        """To the events of a project, the case's own unless another is named."""
        of = project or self.world.project
        hook = Hook(self.world.next_id(), of.id, url, self.world.stamp(), set(flags), token, signing_token)
        self.hooks.append(hook)
        return hook

    def __call__(self, change: Change) -> None:
        """What the world tells: put whatever it makes into the queue of those who want it."""
        for event in events(self.world, change, self.release):
            self.send(event)

    def send(self, event: Event) -> None:
        """To all who want it. What somebody does because of an event bears its id: a hook is not told of that again,
        nor anybody once a hundred were (facts 1, recursion)."""
        event_id = CAUSE.get() or str(uuid.uuid4())
        for hook in self.hooks:
            wanted = event.flag in hook.flags and event.project_id == hook.project_id
            resting = self.resting and hook.alert(self.clock()) != "executable"
            told = [each for each in self.hooks if event_id in each.told]
            if wanted and not resting and hook not in told and len(told) < CHAIN_MOST:
                self.deliver(hook, event, event_id)

    def deliver(self, hook: Hook, event: Event, event_id: str) -> Delivery:
        """To one hook, whether it subscribed or not: the test button does so."""
        key = str(uuid.uuid4())
        named = headers(self.world, event.name, event_id, key, self.release, hook_id=hook.uuid, token=hook.token)
        delivery = Delivery(self.world.next_id(), hook.id, event.name, named | hook.custom_headers, event.body)
        hook.told.add(event_id)
        if hook.template is not None:
            try:
                delivery.body = rendered(hook.template, event.payload)
            except ValueError:
                delivery.problem = "The hook's own template makes no JSON of this event."
        self._enqueue(hook, delivery)
        return delivery

    def resend(self, delivery: Delivery) -> Delivery:
        """Once more, as the button does: the same body and Idempotency-Key (facts 1)."""
        hook = next(each for each in self.hooks if each.id == delivery.hook_id)
        again = replace(
            delivery, id=self.world.next_id(), headers=dict(delivery.headers), status=None, problem="", resent=True
        )
        self._enqueue(hook, again)
        return again

    def settle(self) -> None:
        """Wait until everything was sent, or was given up."""
        self._waiting.join()

    def close(self) -> None:
        """Send what is left and stop; a receiver that is slow is waited for a few seconds. May be called twice."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
        if thread is None:
            return
        self._waiting.put(None)
        thread.join(CLOSING_S)
        self._hurried = True
        if self._post is not None:
            self._post.cut(CLOSED)
        thread.join()

    def _enqueue(self, hook: Hook, delivery: Delivery) -> None:
        delivery.headers.update(signed(hook, delivery, int(self.clock())))
        self.deliveries.append(delivery)
        with self._lock:
            if self._closed:
                delivery.problem = CLOSED
                return
            self._waiting.put((hook, delivery))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lab-hooks", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while (next_one := self._waiting.get()) is not None:
            hook, delivery = next_one
            try:
                self._attempt(hook, delivery)
            finally:
                self._waiting.task_done()
        self._waiting.task_done()

    def _attempt(self, hook: Hook, delivery: Delivery) -> None:
        # in this order: `close` hurries first and cuts then, so that one of the two is always seen
        self._post = Post(hook.url, delivery.headers, delivery.body, self.timeout_s)
        if self._hurried:
            delivery.problem = CLOSED
        elif not delivery.problem:
            delivery.status, delivery.problem = self._post.run()
        hook.answered(delivery.status is not None and 200 <= delivery.status < 300, self.clock())


def hooks_of(world: World) -> Hooks:
    """The ones of this world; they begin to listen with the first call."""
    found = next((each for each in world.listeners if isinstance(each, Hooks)), None)
    if found is None:
        found = Hooks(world)
        world.listeners.append(found)
    return found


def signed(hook: Hook, delivery: Delivery, now: int) -> dict[str, str]:
    """The headers of a hook with a signing token; none for others."""
    if hook.signing_token is None:
        return {}
    key = delivery.headers["Idempotency-Key"]
    return {
        "webhook-id": key,
        "webhook-timestamp": str(now),
        "webhook-signature": signature(hook.signing_token, key, now, delivery.body),
    }
