"""An answer as it streams, without the credentials that we know (I1, I2, L16): what could be the beginning of one is
held back until it is clear that it is none."""

import codecs
from collections.abc import Callable
from dataclasses import replace

from hummingbird.domain.events import CallDelta, Delta, ReasoningDelta, TextDelta
from hummingbird.domain.secrets import Secrets


class _Piecewise:
    def __init__(self, secrets: Secrets) -> None:
        self._masked = secrets.stream_known()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, text: str) -> str:
        return self._decoder.decode(self._masked.feed(text.encode("utf-8", "replace")))

    def end(self) -> str:
        return self._decoder.decode(self._masked.end(), final=True)


class ToldDeltas:
    """Of one answer. `end` tells what was held back; an answer that broke off is not ended."""

    def __init__(self, tell: Callable[[Delta], None], secrets: Secrets) -> None:
        self._tell, self._secrets = tell, secrets
        self._pieces: dict[object, tuple[_Piecewise, Delta]] = {}

    def __call__(self, delta: Delta) -> None:
        """Names of calls are our own tools'."""
        key = delta.index if isinstance(delta, CallDelta) else type(delta)
        pieces, _ = self._pieces.get(key) or (_Piecewise(self._secrets), delta)
        self._pieces[key] = pieces, delta
        self._pass_on(delta, pieces.feed(delta.part if isinstance(delta, CallDelta) else delta.text))

    def end(self) -> None:
        for pieces, delta in self._pieces.values():
            last = replace(delta, name="") if isinstance(delta, CallDelta) else delta
            self._pass_on(last, pieces.end())
        self._pieces.clear()

    def _pass_on(self, delta: Delta, text: str) -> None:
        match delta:
            case CallDelta(name=name) if name or text:
                self._tell(replace(delta, part=text))
            case TextDelta() | ReasoningDelta() if text:
                self._tell(replace(delta, text=text))
            case _:
                pass
