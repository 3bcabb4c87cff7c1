"""Create the rivals' environments from their locks: `python -m benchmarks.rivals.setup [a] [b]`.

Two, because smolagents and the others ask for different openai clients. Knows nothing of the runners.
"""

import argparse
import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SETS = ("a", "b")


def environment(name: str) -> Path:
    return ROOT / f".venv-rivals-{name}"


def lock(name: str) -> Path:
    return ROOT / "requirements" / f"rivals-{name}.lock"


def stamp(name: str) -> str:
    return f"{sys.version} {hashlib.sha256(lock(name).read_bytes()).hexdigest()}"


def install(name: str) -> None:
    home = environment(name)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", "--require-hashes", "-r", str(lock(name))], check=True)
    (home / ".stamp").write_text(stamp(name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", metavar="a|b", help="which environments (default: both)")
    for name in parser.parse_args().sets or SETS:
        if name not in SETS:
            parser.error(f"no such set: {name}")
        written = environment(name) / ".stamp"
        if written.exists() and written.read_text() == stamp(name):
            print(f"{environment(name).name} is up to date")
            continue
        print(f"installing {environment(name).name} …", flush=True)
        install(name)


if __name__ == "__main__":
    main()
