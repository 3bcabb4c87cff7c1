"""Words that often mean that all is well do not take an error away, and results of tests are no errors."""

import pytest

from hummingbird.evidence import analyse
from hummingbird.evidence.regions import RegionKind

ERRORS = {
    "foo.c:3:1: error: 'skip' undeclared (first use in this function)": RegionKind.COMPILER,
    "src/a.c:10:5: error: 'timeout' undeclared": RegionKind.COMPILER,
    "TypeError: done is not a function": RegionKind.COMPILER,
    "java.lang.IllegalStateException: already done": RegionKind.TRACE,
    "E   AssertionError: assert 'skip' == 'ok'": RegionKind.TRACE,
    "Out of memory: Killed process 42 (cc1) success=no": RegionKind.MEMORY,
    "curl: (28) Connection timed out, ignored proxy": RegionKind.NETWORK,
    "pods is forbidden: exceeded quota: compute, requested: cpu=2": RegionKind.QUOTA,
}
RESULTS = (
    "ok 12 - refuses a request after the connection timed out",
    "test parser::fails_on_error ... ok",
    "  ✓ throws a TypeError when the name is undefined",
    "org.example.CartTest > failsWithoutCurrency SKIPPED",
    "Cannot find name in module [tests/x.phpt]  XFAIL REASON: an error nobody repaired",
    "    'ImportExplicit.purs' should fail with 'UnknownImport': OK (0.09s)",
    "Tests run: 12, Failures: 0, Errors: 0",
)


@pytest.mark.parametrize(("line", "kind"), ERRORS.items())
def test_an_error_that_has_a_word_of_success_is_an_error(line: str, kind: RegionKind) -> None:
    found = analyse(f"starting\nworking\n{line}\nleaving\n").regions
    assert [region.kind for region in found if line in region.excerpt] == [kind]


@pytest.mark.parametrize("line", RESULTS)
def test_the_result_of_a_test_that_went_well_is_no_error(line: str) -> None:
    assert analyse(f"starting\nworking\n{line}\nleaving\n").regions == ()


@pytest.mark.parametrize(
    "frame",
    ['[string "bundle:main.lua"]:52: in function <main>', "  13: 0x7f2a91 - std::rt::lang_start::h1", "[C]: in ?"],
)
def test_a_frame_never_leads_a_region(frame: str) -> None:
    lines = ["fine"] * 40 + ["app.lua:3: attempt to index a nil value, error"] + [frame] * 3 + ["bye"]
    assert "attempt to index" in analyse("\n".join(lines)).regions[0].excerpt
