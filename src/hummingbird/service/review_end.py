"""The end of a review (W2): threads of what was fixed are resolved, those of what came back are opened again, and one
line says how all findings stand. Asked for again after a crash, it does and says the same.

A thread in which a person has the last word is theirs to end.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from hummingbird.config.settings import Settings
from hummingbird.domain.findings import Finding, says
from hummingbird.domain.orders import WorkOrder
from hummingbird.domain.review_limits import REVIEW_LINKS
from hummingbird.ports.forge import Forge, MergeRequest, Thread
from hummingbird.service.lifecycle import Followed, Review, Reviewed, State, dismissed
from hummingbird.service.publication import Publication
from hummingbird.service.wording import link, merge_request_url

_TOLD = (State.STILL, State.MOVED, State.BACK, State.FIXED, State.DISMISSED, State.OUTSIDE, State.UNKNOWN)
_ENDED = (State.FIXED, State.DISMISSED)  # nobody has to go there


@dataclass(frozen=True, slots=True)
class ReviewEnd:
    """`again`: the threads of those that were said again. `since`: when the review began, by GitLab's clock."""

    followed: Sequence[Followed]
    again: frozenset[str] = frozenset()
    since: float = 0.0

    def mended(self) -> tuple[Thread, ...]:
        """To be resolved."""
        open_ones = (one.thread for one in self.followed if self._state(one) is State.FIXED and not one.thread.resolved)
        return tuple(thread for thread in open_ones if thread.notes[-1].by_bot)

    def back(self) -> tuple[Thread, ...]:
        """To be opened again."""
        return tuple(one.thread for one in self.followed if one.state is State.BACK and one.thread.resolved)

    def line(self, new: int, order: WorkOrder, settings: Settings) -> str:
        """Markdown of our own; empty if there was nothing before."""
        if not self.followed:
            return ""
        url = merge_request_url(settings, order.project, order.mr_iid)
        told = [f"{new} new" if new else "nothing new", *self._counted(url)]
        return f"Findings: {', '.join(told)}."

    def _counted(self, url: str) -> Iterator[str]:
        for state in _TOLD:
            ones = [one for one in self.followed if self._state(one) is state]
            if ones:
                yield _said(state, [f"{url}#note_{one.note.id}" for one in ones])

    def _state(self, one: Followed) -> State | None:
        """None: it was fixed, and told so, before this review began; or it was settled, and nobody sees it any more."""
        if one.state in (State.UNKNOWN, State.OUTSIDE) and one.thread.resolved:
            return None
        if one.state is not State.FIXED:
            return one.state
        if one.thread.id in self.again:
            return State.STILL
        just = one.thread.resolved_by_bot and one.thread.resolved_at >= self.since
        return State.FIXED if just or not one.thread.resolved else None


@dataclass(frozen=True, slots=True)
class Ending:
    """Of one order's review. Raises what the forge raises, and may be asked for again then."""

    forge: Forge
    order: WorkOrder
    request: MergeRequest
    settings: Settings

    async def reached(
        self, publication: Publication, review: Review, findings: Sequence[Finding], began: int
    ) -> Reviewed:
        """`began`: the note of the placeholder. Once another commit is the head, threads are left to its own review,
        and nobody can say which change was looked at."""
        iid, new = self.order.mr_iid, review.fresh(findings)
        threads = await self.forge.threads(iid)
        since = next((note.made_at for thread in threads for note in thread.notes if note.id == began), 0.0)
        end = ReviewEnd(self._followed(review, threads, new), review.again(findings), since)
        line = end.line(len(new), self.order, self.settings)
        if (await self.forge.merge_request(iid)).change.head != self.request.change.head:
            return Reviewed(line)
        await publication.resolve(iid, end.mended())
        await publication.reopen(iid, end.back())
        return Reviewed(line, review.patch)

    def _followed(self, review: Review, threads: Iterable[Thread], new: Sequence[Finding]) -> Sequence[Followed]:
        """The workflow's own, with their threads as they are now: people go on while a run takes its time. What an
        order of the same session has posted for this one is new."""
        fresh = {thread.id: thread for thread in threads}
        known = (replace(one, thread=fresh.get(one.thread.id, one.thread)) for one in review.followed)
        return [_resolved_since(one) for one in known if self._ours(one, new)]

    def _ours(self, one: Followed, new: Sequence[Finding]) -> bool:
        marker = one.note.marker
        if marker is None or marker.wf != self.order.workflow:
            return False
        return marker.id != self.order.session_id or not any(says(finding, one.earlier) for finding in new)


def _resolved_since(one: Followed) -> Followed:
    if one.state is State.FIXED or not dismissed(one.thread):
        return one
    return replace(one, state=State.DISMISSED)


def _said(state: State, urls: Sequence[str]) -> str:
    words = f"{len(urls)} {state}"
    if state in _ENDED:
        return words
    if len(urls) == 1:
        return link(words, urls[0])
    links = (link(str(number), url) for number, url in enumerate(urls[:REVIEW_LINKS], 1))
    return f"{words} ({', '.join(links)})"
