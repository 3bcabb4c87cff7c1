"""A conversation in a terminal, from its first prompt to its end. Assembly says who is talked to."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TypeAlias

from hummingbird.chat.attachments import Composer
from hummingbird.chat.logged import logged
from hummingbird.chat.partner import Partner
from hummingbird.chat.pauses import settled
from hummingbird.chat.shown import Tone
from hummingbird.chat.talk import Talk
from hummingbird.chat.terminal import Setting, Terminal
from hummingbird.chat.terminal_ends import display, keyboard
from hummingbird.ports.observer import Observer
from hummingbird.ports.permissions import Asker
from hummingbird.ports.person import Clarifier

PartnerOf: TypeAlias = Callable[[Observer, Asker, Clarifier], Awaitable[Partner]]


def is_terminal(environment: Mapping[str, str]) -> bool:
    """Whether there is one that can move its cursor. Else `headless` takes line after line."""
    streams = (sys.stdin, sys.stdout)
    return environment.get("TERM") != "dumb" and all(one is not None and one.isatty() for one in streams)


async def converse(partner_of: PartnerOf, setting: Setting) -> int:
    """Returns the exit code when the person has left. Raises HummingbirdError if there is nobody to talk to."""
    terminal = Terminal(setting, keyboard(), display(setting.environment))
    partner = await partner_of(terminal.narrator, terminal.questions, terminal.questions)
    settled()
    composer = Composer(setting.start, partner.attach, terminal.pastes)
    talk = Talk(partner, terminal, terminal.narrator, terminal.questions, composer)
    with _ended_by_signals(talk):  # until all is closed: whoever closes a window may send the signal twice
        try:
            if setting.greeting:
                terminal.say(setting.greeting, Tone.DIM)
            with logged(terminal):
                await terminal.run(talk)
        finally:
            session = partner.standing().session_id
            await talk.close()
    terminal.say(f"The session is kept: hummingbird chat --resume {session}", Tone.DIM)
    terminal.finish()
    return 0


@contextmanager
def _ended_by_signals(talk: Talk) -> Iterator[None]:
    """Whoever closes the window or ends us leaves: processes in the background are not left behind."""
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGHUP)
    for one in signals:
        loop.add_signal_handler(one, talk.leave)
    try:
        yield
    finally:
        for one in signals:
            with suppress(ValueError):
                loop.remove_signal_handler(one)
