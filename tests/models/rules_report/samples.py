"""Logs of failed jobs, short but like real ones. The names in them can be changed."""

COMPILE = """\
$ make -j4
gcc -O2 -c -o build/{stem}.o src/{stem}.c
src/{stem}.c: In function 'steer':
src/{stem}.c:42:5: error: 'throttle' undeclared (first use in this function)
   42 |     throttle = 3;
      |     ^~~~~~~~
make: *** [Makefile:12: build/{stem}.o] Error 1
Cleaning up project directory and file based variables
ERROR: Job failed: exit code 2
"""
TEST = """\
$ pytest -q
....F...
=================================== FAILURES ===================================
_________________________________ test_{stem}_climbs _________________________________
    def test_{stem}_climbs():
>       assert climb(3) == 9
E       AssertionError: assert 6 == 9
tests/test_{stem}.py:17: AssertionError
=========================== short test summary info ============================
FAILED tests/test_{stem}.py::test_{stem}_climbs - AssertionError: assert 6 == 9
1 failed, 7 passed in 0.31s
ERROR: Job failed: exit code 1
"""
NETWORK = """\
$ dnf install -y {stem}
Errors during downloading metadata for repository 'base':
  - Curl error (6): Couldn't resolve host name for https://mirror.example/base [Could not resolve host: mirror.example]
Error: Failed to download metadata for repo 'base': Cannot download repomd.xml: All mirrors were tried
ERROR: Job failed: exit code 1
"""


def log(sample: str, stem: str) -> str:
    return sample.replace("{stem}", stem)


def long_log(sample: str, stem: str, *, before: int = 4000, after: int = 4000) -> str:
    """The failure in the middle of much that went well, so that neither head nor tail shows it."""
    head = [f"compiled module {number} without a word" for number in range(before)]
    tail = [f"uploaded piece {number} of the cache" for number in range(after)]
    return "\n".join([*head, *log(sample, stem).rstrip().split("\n"), *tail, "bye"]) + "\n"
