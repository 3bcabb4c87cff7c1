"""As much of kustomize as the files in deploy/kubernetes use, for machines without kubectl; a test compares the two
where it is installed. What it does not know is an error, not left out."""

import copy
from pathlib import Path
from typing import Any

import yaml

Raw = dict[str, Any]
ROOT = Path(__file__).parents[2] / "deploy" / "kubernetes"
BASE = ROOT / "base"
EXAMPLE = ROOT / "overlays" / "example"
OPENSHIFT = ROOT / "overlays" / "openshift"
NAMESPACES = ROOT / "namespaces"
SECRET = ROOT / "secret-template.yaml"
_KNOWN = {"apiVersion", "kind", "resources", "configMapGenerator", "images", "replicas", "patches"}


def kustomization(folder: Path) -> Raw:
    [read] = documents(folder / "kustomization.yaml")
    assert read.keys() <= _KNOWN, f"kustomize.py knows nothing of {read.keys() - _KNOWN}"
    return read


def documents(path: Path) -> list[Raw]:
    return list(yaml.safe_load_all(path.read_text(encoding="utf-8")))


def rendered(folder: Path) -> list[Raw]:
    """Every document, in the order of the resources."""
    wanted = kustomization(folder)
    made = [one for name in wanted["resources"] for one in _resource(folder / name)]
    for generator in wanted.get("configMapGenerator", []):
        _generate(made, folder, generator)
    for patch in wanted.get("patches", []):
        _patch(_only(made, **patch["target"]), yaml.safe_load(patch["patch"]))
    for image in wanted.get("images", []):
        for one in made:
            _rename(one, image)
    for replicas in wanted.get("replicas", []):
        _only(made, kind="Deployment", name=replicas["name"])["spec"]["replicas"] = replicas["count"]
    return made


def found(made: list[Raw], kind: str, name: str) -> Raw:
    return _only(made, kind=kind, name=name)


def _resource(path: Path) -> list[Raw]:
    return rendered(path) if path.is_dir() else documents(path)


def _only(made: list[Raw], *, kind: str, name: str) -> Raw:
    [one] = [each for each in made if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return one


def _generate(made: list[Raw], folder: Path, generator: Raw) -> None:
    assert generator["options"] == {"disableNameSuffixHash": True}
    texts = {name: (folder / name).read_text(encoding="utf-8") for name in generator["files"]}
    if generator.get("behavior") == "merge":
        _only(made, kind="ConfigMap", name=generator["name"])["data"].update(texts)
        return
    metadata = {"name": generator["name"], "namespace": generator["namespace"]}
    made.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": texts})


def _patch(document: Raw, operations: list[Raw]) -> None:
    for one in operations:
        assert one["op"] in {"add", "remove"}
        *above, last = one["path"].removeprefix("/").split("/")
        place: Any = document
        for step in above:
            place = place[int(step)] if isinstance(place, list) else place[step]
        if one["op"] == "remove":
            del place[last]
        elif last == "-":
            place.append(copy.deepcopy(one["value"]))
        else:
            place[last] = copy.deepcopy(one["value"])


def _rename(document: Raw, image: Raw) -> None:
    if document["kind"] != "Deployment":
        return
    for container in document["spec"]["template"]["spec"]["containers"]:
        name, _, _ = container["image"].rpartition(":")
        if name == image["name"]:
            container["image"] = f"{image['newName']}:{image['newTag']}"
