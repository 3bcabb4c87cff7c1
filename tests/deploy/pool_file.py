"""deploy/kubernetes/base/pool.yaml, as the code would have it. `python -m tests.deploy.pool_file` writes it anew."""

from pathlib import Path
from typing import Any

import yaml

from hummingbird import __version__
from hummingbird.sandboxes.kubernetes_manifest import PodSettings, build_deployment

IMAGE = f"registry.example/hummingbird-sandbox:{__version__}"
NAMESPACE = "hummingbird-sandboxes"
FILE = Path(__file__).parents[2] / "deploy" / "kubernetes" / "base" / "pool.yaml"
_HEAD = """\
# Sandboxes that stand by. The agent claims one by changing its labels; the Deployment then makes the next. Pods have to
# be what the agent would make itself, so a program writes this file (tests/deploy/pool_file.py) and a test compares it:
# yours to change are image and number, in an overlay.
"""


class _Lines(yaml.SafeDumper):
    """Texts of several lines as such."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Lines.add_representer(str, _text)


def expected() -> dict[str, Any]:
    made = build_deployment(PodSettings(IMAGE))
    name, labels = made["metadata"]["name"], made["metadata"]["labels"]
    return {**made, "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels}}


def written() -> str:
    return _HEAD + yaml.dump(expected(), Dumper=_Lines, sort_keys=False, width=120)


if __name__ == "__main__":
    FILE.write_text(written(), encoding="utf-8")
