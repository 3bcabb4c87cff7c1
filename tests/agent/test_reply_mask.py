"""What streams holds no credential that we know, wherever it is cut."""

from hypothesis import given
from hypothesis import strategies as st

from hummingbird.agent.model_call import MaskedDeltas
from hummingbird.core.events import CallDelta, Delta, ReasoningDelta, TextDelta
from hummingbird.core.masking import Secrets

SECRET = "sesame-öffne-dich-0123456789"


def told(deltas: list[Delta], secrets: Secrets) -> list[Delta]:
    seen: list[Delta] = []
    telling = MaskedDeltas(seen.append, secrets)
    for delta in deltas:
        telling(delta)
    telling.end()
    return seen


@given(st.lists(st.integers(1, 12), min_size=1, max_size=30), st.text(max_size=20), st.text(max_size=20))
def test_a_credential_is_masked_however_it_is_cut_into_pieces(cuts: list[int], before: str, after: str) -> None:
    secrets = Secrets([SECRET])
    whole = f"{before} {SECRET} {after}".encode("utf-8", "replace").decode()
    pieces, at = [], 0
    for cut in cuts:
        pieces.append(whole[at : at + cut])
        at += cut
    pieces.append(whole[at:])
    for kind in (TextDelta, ReasoningDelta):
        seen = told([kind(piece) for piece in pieces], secrets)
        text = "".join(one.text for one in seen if not isinstance(one, CallDelta))
        assert text == secrets.mask_known(whole)
        assert SECRET not in text


def test_calls_keep_their_names_and_lose_credentials() -> None:
    secrets = Secrets([SECRET])
    seen = told(
        [CallDelta(0, "terminal", '{"command": "echo '), CallDelta(0, "", SECRET[:9]), CallDelta(0, "", SECRET[9:])],
        secrets,
    )
    assert [one.name for one in seen if isinstance(one, CallDelta) and one.name] == ["terminal"]
    assert SECRET not in "".join(one.part for one in seen if isinstance(one, CallDelta))


def test_what_is_no_credential_is_told_at_once() -> None:
    """Nothing waits for the end of an answer."""
    seen: list[Delta] = []
    telling = MaskedDeltas(seen.append, Secrets([SECRET]))
    telling(TextDelta("The cause "))
    assert seen == [TextDelta("The cause ")]
