"""What `make test` plays of the tests of the stand-ins: they matter when a stand-in changes, not on every commit.

Of each test it plays the first case; what needs an SDK, kubectl or containers of its own it leaves to `make thorough`.
The tests of the parts that talk to a stand-in play the rest of it all the time.
"""

from pathlib import Path

import pytest

from tests.thoroughly import ALL

collect_ignore = (
    []
    if ALL
    else [
        "konflux/test_konflux_kubectl.py",
        "kubernetes/test_kubernetes_exec.py",
        "kubernetes/test_kubernetes_life.py",
        "kubernetes/test_kubernetes_lightkube.py",
        "test_schemas.py",
        "test_schemas_refusals.py",
        "vendors/test_vendor_faults.py",
        "vendors/test_vendor_sdk_anthropic.py",
        "vendors/test_vendor_sdk_gemini.py",
        "vendors/test_vendor_sdk_openai.py",
    ]
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out all but the first case of each test of a stand-in."""
    if ALL:
        return
    here = Path(__file__).parent
    seen: set[tuple[Path, str]] = set()
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        test = (item.path, getattr(item, "originalname", item.name))
        repeated = test in seen and item.path.is_relative_to(here)
        seen.add(test)
        (left if repeated else kept).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = kept
