"""What a review says, told at once (W2, N3): findings and result are held back and then released together, so that
people get one notification.

    batch = await begun(forge, clock, merge_request, marker)       # None: it cannot be done here
    if await batch.hold(spot, draft): …
    await batch.release()                                           # then look: nothing else tells what came of it

GitLab releases all that the bot holds on a merge request, whoever held it, and where it fails on the way some notes are
there and all are held still. So what others left behind goes first, and what is there is dropped before it is released
again. No note depends on this: each is looked for afterwards, and what is not there is posted by itself.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from hummingbird.domain.diffs import Spot
from hummingbird.domain.errors import ForgeMissing, ForgeRefused, WriteUncertain
from hummingbird.domain.limits import NOTE_LOOKS_S, NOTE_WRITES
from hummingbird.domain.notes import Draft, Marker, Part
from hummingbird.ports.clock import Clock
from hummingbird.ports.forge import Forge, Held, MergeRequest, Thread
from hummingbird.service.gates import ENDS


@dataclass(slots=True)
class Batch:
    """Of one order, whose `marker` it is. `findings`: fingerprints of what is held already, by whichever order."""

    forge: Forge
    clock: Clock
    merge_request: MergeRequest
    marker: Marker
    findings: set[str]
    waiting: bool = False  # whether something of this order is held

    async def hold(self, place: Spot | Thread, draft: Draft) -> bool:
        """Whether it will be there with the release. Once: what may have been held is looked for, and not held again.
        Raises ForgeDown and CredentialRefused."""
        try:
            await self.forge.hold(self.merge_request, place, draft)
        except WriteUncertain:
            if not await self._found(draft.marker):
                return False
        except (ForgeMissing, ForgeRefused):
            return False
        self.waiting = True
        return True

    def speaks_of(self, findings: Iterable[str]) -> bool:
        """Whether a release tells something of this order, though another one may have held it."""
        return self.waiting or not self.findings.isdisjoint(findings)

    async def release(self) -> None:
        """Afterwards nothing of this order is held any more. Raises ForgeDown and CredentialRefused."""
        for _ in range(NOTE_WRITES):
            try:
                return await self.forge.release(self._iid)
            except WriteUncertain:
                if await self._all_out():
                    return None
            except (ForgeMissing, ForgeRefused):
                break
        for one in await self.forge.held(self._iid):
            if one.marker is not None and one.marker.order == self.marker.order:
                await self.forge.drop(self._iid, one.id)
        return None

    @property
    def _iid(self) -> int:
        return self.merge_request.change.iid

    async def _found(self, marker: Marker | None) -> bool:
        for pause_s in NOTE_LOOKS_S:
            await self.clock.sleep(pause_s)
            held = (one.marker for one in await self.forge.held(self._iid))
            if marker in held or marker in _markers(await self.forge.threads(self._iid)):
                return True
        return False

    async def _all_out(self) -> bool:
        """Whether nothing is held. What is there as a note is dropped, or the next release would repeat it."""
        for pause_s in NOTE_LOOKS_S:
            await self.clock.sleep(pause_s)
            there = {_key(marker) for marker in _markers(await self.forge.threads(self._iid))}
            left = []
            for one in await self.forge.held(self._iid):
                if one.marker is not None and _key(one.marker) in there:
                    await self.forge.drop(self._iid, one.id)
                else:
                    left.append(one)
            if not left:
                return True
        return False


async def begun(forge: Forge, clock: Clock, merge_request: MergeRequest, marker: Marker) -> Batch | None:
    """Without what dead orders left. None: the server has no such thing, or something is held that is not ours and
    would be released along. Raises as the forge does."""
    iid = merge_request.change.iid
    try:
        held = await forge.held(iid)
    except (ForgeMissing, ForgeRefused):
        return None
    if any(one.marker is None for one in held):
        return None
    batch = Batch(forge, clock, merge_request, marker, set())
    there = _markers(await forge.threads(iid)) if held else ()
    for one in held:
        if _left_behind(one, batch, there):
            await forge.drop(iid, one.id)
        elif one.marker is not None:
            batch.findings |= {one.marker.finding} - {""}
    return batch


def _left_behind(one: Held, batch: Batch, there: Iterable[Marker]) -> bool:
    """About another commit, there as a note, of an order that has ended; or our own, which may say something else by
    now and is held again. What another order holds about this commit would be said anyhow."""
    marker, head = one.marker, batch.merge_request.change.head
    if marker is None:
        return False
    own = marker.order == batch.marker.order
    elsewhere = bool(marker.sha) and marker.sha != head
    said = any(_key(each) == _key(marker) or (each.order == marker.order and each.part in ENDS) for each in there)
    return own or elsewhere or said


def _markers(threads: Iterable[Thread]) -> tuple[Marker, ...]:
    return tuple(note.marker for thread in threads for note in thread.notes if note.marker is not None)


def _key(marker: Marker) -> tuple[str, ...]:
    """A finding is the same whoever says it; of everything else an order says one."""
    return (marker.finding,) if marker.part is Part.FINDING else (marker.order, marker.part)
