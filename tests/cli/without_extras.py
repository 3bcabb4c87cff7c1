"""The command line on a plain install: `python -m tests.cli.without_extras ARGUMENTS`; what extras bring is hidden."""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

HIDDEN = frozenset({"acp", "boto3", "botocore", "lightkube", "mcp", "obstore"})


class _Hidden:
    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] in HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


if __name__ == "__main__":
    sys.meta_path.insert(0, _Hidden())
    from hummingbird.cli.main import main

    sys.argv = ["hummingbird", *sys.argv[1:]]
    main()
