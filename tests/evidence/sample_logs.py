"""Small logs as the tools write them: a few lines that matter, and the line among them that decides."""

from dataclasses import dataclass

from hummingbird.evidence.regions import FailureClass, RegionKind

_NOISE = (
    "Downloading package-{n}.tar.gz ({n}.4 kB)",
    "Unpacking libthing{n} (1.{n}.0-3) ...",
    "[{n}/900] Building C object src/part_{n}.c.o",
    "INFO  worker-{n} started in 0.{n} s",
    "Setting up module_{n} (2.0.{n}) ...",
    "  copied assets/picture_{n}.png",
    "GET /health 200 {n}ms",
)


def noise(lines: int, first: int = 1) -> list[str]:
    return [_NOISE[n % len(_NOISE)].format(n=n) for n in range(first, first + lines)]


def around(lines: list[str], before: int = 200, after: int = 120) -> str:
    return "\n".join([*noise(before), *lines, *noise(after, 2_000)]) + "\n"


@dataclass(frozen=True, slots=True)
class Sample:
    said: str
    decisive: str
    kinds: frozenset[RegionKind]
    classes: frozenset[FailureClass]
    after: int = 120  # lines of noise behind it

    @property
    def text(self) -> str:
        return around(self.said.splitlines(), after=self.after)


def _of(decisive: str, kinds: set[RegionKind], classes: set[FailureClass], said: str, after: int = 120) -> Sample:
    return Sample(said.strip("\n"), decisive, frozenset(kinds), frozenset(classes), after)


_CODE, _TESTS, _MACHINE = {FailureClass.CODE}, {FailureClass.TEST, FailureClass.CODE}, {FailureClass.INFRASTRUCTURE}

COMPILERS = {
    "gcc": _of("src/parser.c:42:13: error: 'depth' undeclared", {RegionKind.COMPILER}, _CODE, """
gcc -O2 -Wall -c -o parser.o src/parser.c
src/parser.c: In function 'parse_block':
src/parser.c:42:13: error: 'depth' undeclared (first use in this function)
   42 |     while (depth > 0) {
      |            ^~~~~
make: *** [Makefile:17: parser.o] Error 1
"""),
    "rustc": _of("error[E0308]: mismatched types", {RegionKind.COMPILER}, _CODE, """
   Compiling world v0.1.0 (/builds/game/world)
error[E0308]: mismatched types
  --> world/src/lib.rs:88:21
   |
88 |     let depth: u32 = name.len();
   |                ---   ^^^^^^^^^^ expected `u32`, found `usize`
   |                |
   |                expected due to this

error: could not compile `world` (lib) due to 1 previous error
"""),
    "javac": _of(
        "/builds/shop/src/main/java/org/example/Cart.java:[31,24] cannot find symbol",
        {RegionKind.COMPILER}, _CODE, """
[INFO] --- maven-compiler-plugin:3.11.0:compile (default-compile) @ shop ---
[INFO] Compiling 14 source files to /builds/shop/target/classes
[ERROR] COMPILATION ERROR :
[ERROR] /builds/shop/src/main/java/org/example/Cart.java:[31,24] cannot find symbol
[ERROR]   symbol:   method totl()
[ERROR]   location: class org.example.Cart
[INFO] BUILD FAILURE
[ERROR] Failed to execute goal maven-compiler-plugin:3.11.0:compile on project shop: Compilation failure
[ERROR] -> [Help 1]
[ERROR]
[ERROR] To see the full stack trace of the errors, re-run Maven with the -e switch.
[ERROR] For more information about the errors and possible solutions, please read the following articles:
[ERROR] [Help 1] http://cwiki.apache.org/confluence/display/MAVEN/MojoFailureException
"""),
    "tsc": _of("src/cart.ts(12,7): error TS2322", {RegionKind.COMPILER}, _CODE, """
> shop@1.0.0 build
> tsc -p .

src/cart.ts(12,7): error TS2322: Type 'string' is not assignable to type 'number'.
npm ERR! code ELIFECYCLE
npm ERR! errno 2
npm ERR! shop@1.0.0 build: `tsc -p .`
npm ERR! Exit status 2
npm ERR! A complete log of this run can be found in:
npm ERR!     /home/ci/.npm/_logs/2024-01-01T00_00_00_000Z-debug.log
"""),
    "go": _of("./server.go:27:9: undefined: newRouter", {RegionKind.COMPILER}, _CODE, """
go build ./...
# example.com/shop/server
./server.go:27:9: undefined: newRouter
make: *** [Makefile:8: build] Error 1
"""),
}  # fmt: skip

TESTS = {
    "pytest": _of("E       assert 2 == 3", {RegionKind.TEST, RegionKind.TRACE}, _TESTS, """
=================================== FAILURES ===================================
_________________________________ test_totals __________________________________

    def test_totals():
        cart = Cart([1, 1])
>       assert cart.total() == 3
E       assert 2 == 3
E        +  where 2 = total()

tests/test_cart.py:14: AssertionError
=========================== short test summary info ============================
FAILED tests/test_cart.py::test_totals - assert 2 == 3
========================= 1 failed, 41 passed in 3.21s =========================
"""),
    "gradle": _of(
        "org.opentest4j.AssertionFailedError: expected: <3> but was: <2>",
        {RegionKind.TEST, RegionKind.TRACE}, _TESTS, """
> Task :test

CartTest > totals() FAILED
    org.opentest4j.AssertionFailedError: expected: <3> but was: <2>
        at org.junit.jupiter.api.AssertionUtils.fail(AssertionUtils.java:55)
        at org.example.CartTest.totals(CartTest.java:42)

42 tests completed, 1 failed

> Task :test FAILED

FAILURE: Build failed with an exception.

* What went wrong:
Execution failed for task ':test'.
> There were failing tests. See the report at: file:///builds/shop/build/reports/tests/test/index.html
"""),
    "go test": _of("cart_test.go:31: total: got 2, want 3", {RegionKind.TEST}, _TESTS, """
=== RUN   TestTotals
    cart_test.go:31: total: got 2, want 3
--- FAIL: TestTotals (0.00s)
FAIL
FAIL	example.com/shop/cart	0.012s
"""),
    "jest": _of("Expected: 3", {RegionKind.TEST}, _TESTS, """
 FAIL  src/cart.test.js
  Cart
    ✕ totals what is in it (4 ms)

  ● Cart › totals what is in it

    expect(received).toBe(expected) // Object.is equality

    Expected: 3
    Received: 2

      12 |   const cart = new Cart([1, 1]);
    > 13 |   expect(cart.total()).toBe(3);
         |                        ^
      at Object.<anonymous> (src/cart.test.js:13:24)

Tests:       1 failed, 41 passed, 42 total
"""),
    "rspec": _of("expected: 3", {RegionKind.TEST}, _TESTS, """
Failures:

  1) Cart totals what is in it
     Failure/Error: expect(cart.total).to eq(3)

       expected: 3
            got: 2

       (compared using ==)
     # ./spec/cart_spec.rb:13:in `block (2 levels) in <top (required)>'

Finished in 0.12 seconds (files took 0.3 seconds to load)
42 examples, 1 failure
"""),
    "TAP": _of("not ok 3 - totals what is in it", {RegionKind.TEST}, _TESTS, """
ok 1 - is empty at first
ok 2 - takes a thing
not ok 3 - totals what is in it
#   Failed test 'totals what is in it'
#   at t/cart.t line 13.
#          got: '2'
#     expected: '3'
ok 4 - forgets
# Looks like you failed 1 test of 4.
"""),
}  # fmt: skip

TRACES = {
    "python": _of("KeyError: 'currency'", {RegionKind.TRACE}, {*_CODE, *_TESTS, FailureClass.UNKNOWN}, """
Traceback (most recent call last):
  File "/builds/shop/run.py", line 9, in <module>
    main()
  File "/builds/shop/shop/cli.py", line 31, in main
    price(cart)
  File "/builds/shop/shop/price.py", line 12, in price
    return table[cart['currency']]
KeyError: 'currency'
"""),
    "java": _of(
        "Caused by: java.lang.IllegalStateException: no currency is set",
        {RegionKind.TRACE}, {*_CODE, FailureClass.UNKNOWN}, """
Exception in thread "main" java.lang.RuntimeException: could not price the cart
	at org.example.Shop.price(Shop.java:31)
	at org.example.Shop.main(Shop.java:9)
Caused by: java.lang.IllegalStateException: no currency is set
	at org.example.Prices.table(Prices.java:77)
	at org.example.Shop.price(Shop.java:29)
	... 1 more
"""),
    "go": _of(
        "panic: runtime error: index out of range [3] with length 3",
        {RegionKind.TRACE, RegionKind.TEST}, {*_CODE, *_TESTS}, """
panic: runtime error: index out of range [3] with length 3

goroutine 1 [running]:
main.price(...)
	/builds/shop/main.go:31
main.main()
	/builds/shop/main.go:9 +0x1d
exit status 2
"""),
}  # fmt: skip

MACHINES = {
    "summary": _of("FAILURE: Build failed with an exception.",
        {RegionKind.SUMMARY, RegionKind.EXIT, RegionKind.TEST}, set(FailureClass), """
FAILURE: Build failed with an exception.

* What went wrong:
Execution failed for task ':shop:assemble'.
> the archive has no manifest

* Try:
> Run with --stacktrace option to get the stack trace.

BUILD FAILED in 41s
12 actionable tasks: 9 executed, 3 up-to-date
""", 3),
    "exit status": _of("ERROR: Job failed: exit code 1", {RegionKind.EXIT}, set(FailureClass), """
Cleaning up project directory and file based variables
ERROR: Job failed: exit code 1
""", 0),
    "memory": _of("Out of memory: Killed process 4211", {RegionKind.MEMORY}, _MACHINE, """
[ 4211.123456] Out of memory: Killed process 4211 (cc1plus) total-vm:8123456kB, anon-rss:7912345kB
c++: fatal error: Killed signal terminated program cc1plus
make: *** [Makefile:40: big.o] Error 1
""", 5),
    "timeout": _of(
        "ERROR: Job failed: execution took longer than 1h0m0s seconds",
        {RegionKind.TIMEOUT, RegionKind.EXIT}, {FailureClass.INFRASTRUCTURE, FailureClass.FLAKY}, """
still waiting for the database
ERROR: Job failed: execution took longer than 1h0m0s seconds
""", 0),
    "slow test": _of(
        "Error: Timeout of 2000ms exceeded",
        {RegionKind.TIMEOUT, RegionKind.TEST}, {FailureClass.TEST, FailureClass.FLAKY, FailureClass.CODE}, """
  1) Cart totals what is in it:
     Error: Timeout of 2000ms exceeded. For async tests and hooks, ensure "done()" is called
      at listOnTimeout (internal/timers.js:549:17)
"""),
    "missing module": _of(
        "ModuleNotFoundError: No module named 'pricing'",
        {RegionKind.DEPENDENCY}, {FailureClass.CONFIGURATION}, """
Traceback (most recent call last):
  File "/builds/shop/run.py", line 2, in <module>
    import pricing
ModuleNotFoundError: No module named 'pricing'
"""),
    "missing package": _of("E: Unable to locate package libshop-dev",
        {RegionKind.DEPENDENCY}, {FailureClass.CONFIGURATION}, """
Reading package lists...
Building dependency tree...
E: Unable to locate package libshop-dev
""", 4),
    "network": _of("Could not resolve host: git.example.com", {RegionKind.NETWORK}, _MACHINE, """
Cloning into 'shop'...
fatal: unable to access 'https://git.example.com/shop.git/': Could not resolve host: git.example.com
""", 4),
    "disk": _of("No space left on device", {RegionKind.QUOTA}, _MACHINE, """
tar: shop/data.bin: Cannot write: No space left on device
tar: Exiting with failure status due to previous errors
""", 4),
}  # fmt: skip

SAMPLES = {
    f"{room}: {name}": sample
    for room, samples in (("compiler", COMPILERS), ("test", TESTS), ("trace", TRACES), ("machine", MACHINES))
    for name, sample in samples.items()
}
