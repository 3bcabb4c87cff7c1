"""What a person reads first of a failure: the test, the message and the place, in the forms that tools have."""

import pytest

from hummingbird.evidence.headlines import clean_lines, read_headline
from hummingbird.evidence.next_steps import GENERAL_STEPS, rule_step

FORMS = {
    "pytest": (
        "FAILED tests/test_cart.py::test_total - AssertionError: assert 3 == 4",
        "    def test_total():\n>       assert total([1, 2]) == 4\nE       assert 3 == 4\n\n"
        "tests/test_cart.py:9: AssertionError\nFAILED tests/test_cart.py::test_total - AssertionError: assert 3 == 4",
        ("tests/test_cart.py::test_total", "AssertionError: assert 3 == 4", "test_cart.py:9"),
    ),
    "rust-panic": (
        "thread 'tests::names' panicked at helpers/src/lib.rs:462:17:",
        "test tests::names ... FAILED\nfailures:\nthread 'tests::names' panicked at helpers/src/lib.rs:462:17:\n"
        "'goblin' name doesn't have i18n\nnote: run with `RUST_BACKTRACE=1`",
        ("tests::names", "panicked at helpers/src/lib.rs:462:17: 'goblin' name doesn't have i18n", "lib.rs:462"),
    ),
    "go": (
        "cart_test.go:12: want 4, got 3",
        "--- FAIL: TestCart (0.00s)\n    --- FAIL: TestCart/total (0.00s)\n        cart_test.go:12: unexpected 3",
        ("TestCart/total", "cart_test.go:12: unexpected 3", "cart_test.go:12"),
    ),
    "gcc": (
        "src/cart.c:40:9: error: 'totl' undeclared (first use in this function)",
        "gcc -c src/cart.c\nsrc/old.c:3:1: warning: unused variable\n"
        "src/cart.c:40:9: error: 'totl' undeclared (first use in this function)\nmake: *** [Makefile:3: all] Error 1",
        ("", "'totl' undeclared", "cart.c:40"),
    ),
    "typescript": (
        "src/cart.ts(12,5): error TS2322: Type 'string' is not assignable to type 'number'.",
        "src/cart.ts(12,5): error TS2322: Type 'string' is not assignable to type 'number'.\n"
        "error Command failed with exit code 2.",
        ("", "error TS2322", "cart.ts:12"),
    ),
    "jest": (
        "● Cart › adds up",
        "  ● Cart › adds up\n\n    expect(received).toBe(expected)\n\n    Expected: 4\n    Received: 3\n\n"
        "      at Object.<anonymous> (src/cart.test.ts:8:19)",
        ("Cart › adds up", "expect(received).toBe(expected)", "cart.test.ts:8"),
    ),
    "java": (
        "java.lang.IllegalStateException: no cart",
        "CartTest > total() FAILED\n    java.lang.IllegalStateException: no cart\n"
        "        at java.base/java.util.Optional.orElseThrow(Optional.java:403)\n"
        "        at shop.Cart.total(Cart.java:31)",
        ("CartTest > total()", "java.lang.IllegalStateException: no cart", "Cart.java:31"),
    ),
    "python-traceback": (
        "KeyError: 'price'",
        'Traceback (most recent call last):\n  File "/builds/shop/cart/src/cart.py", line 7, in total\n'
        "    return row['price']\nKeyError: 'price'",
        ("", "KeyError: 'price'", "cart.py:7"),
    ),
    "eslint": (
        "12:7  error  'tax' is assigned a value but never used  no-unused-vars",
        "/builds/shop/cart/web/cart.js\n  12:7  error  'tax' is assigned a value but never used  no-unused-vars\n"
        "✖ 1 problem (1 error, 0 warnings)",
        ("", "'tax' is assigned a value but never used", "cart.js:12"),
    ),
    "boxed": (
        "│ Error: Failed to install provider",
        "│ Error: Failed to install provider\n│\n│ Error while installing null: Get\n│ net/http: TLS handshake timeout",
        ("", "Error: Failed to install provider … net/http: TLS handshake timeout", ""),
    ),
    "dotnet": (
        "Assert.Equal() Failure: Values differ",
        "  Failed Shop.CartTests.Total [12 ms]\n  Error Message:\n   Assert.Equal() Failure: Values differ\n"
        "  Stack Trace:\n     at Shop.CartTests.Total() in /builds/shop/cart/tests/CartTests.cs:line 14",
        ("Shop.CartTests.Total", "Values differ", "CartTests.cs:14"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("tool", FORMS)
def test_test_message_and_place_are_found(tool: str) -> None:
    title, excerpt, (test, message, place) = FORMS[tool]
    seen = read_headline(title, excerpt, project="shop/cart")
    assert seen.test == test
    assert message in seen.message
    assert (seen.place.name if seen.place else "") == place
    assert seen.message.split(" … ")[0][-20:] in seen.lines[seen.key] or place or test


def test_a_changed_file_comes_before_others_and_has_its_whole_path() -> None:
    trace = 'ValueError: no\n  File "lib/a.py", line 3, in f\n  File "cart.py", line 9, in g'
    seen = read_headline("ValueError: no", trace, ["src/shop/cart.py"])
    assert seen.place is not None
    assert (seen.place.path, seen.place.line, seen.place.known) == ("src/shop/cart.py", 9, True)


@pytest.mark.parametrize(
    "line",
    [
        "  at Module._compile (node:internal/modules/cjs/loader:1554:14)",
        'File "/usr/lib/python3.12/json/decoder.py", line 355',
        "see https://docs.example/page.html:443",
        "10.0.0.12:5432 refused the connection",
        "at /root/elsewhere/x.py:3",
    ],
)
def test_what_is_not_the_projects_code_is_no_place(line: str) -> None:
    assert read_headline("boom", f"boom\n{line}").place is None


def test_runner_markers_and_terminal_sequences_never_appear() -> None:
    raw = "section_start:1683352185:step_script\r\x1b[0K\x1b[31;1mERROR: no\x1b[0;m\n\n\tsection_end:1:x\r\x1b[0K"
    assert clean_lines(raw) == ["ERROR: no"]


def test_advice_to_retry_is_not_given_for_what_a_change_caused() -> None:
    assert "Retry" in rule_step("disk-full")
    assert rule_step("disk-full", of_change=True) == ""
    assert rule_step("not-formatted", of_change=True) == "Run the formatter and push what it changes."
    assert rule_step("assertion-failed") == ""
    assert all(step.endswith(".") for step in GENERAL_STEPS.values())
