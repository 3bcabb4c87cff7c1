"""Tables, which kubectl asks for when it prints for people: the columns that the real server would send."""

from typing import Any

from hummingbird.lab.konflux.lists import Page
from hummingbird.lab.konflux.objects import Item
from hummingbird.lab.kubernetes.refusals import Raw

_RUN_COLUMNS = (("Succeeded", "string"), ("Reason", "string"), ("StartTime", "date"), ("CompletionTime", "date"))
_POD_COLUMNS = (("Ready", "string"), ("Status", "string"), ("Restarts", "string"), ("Age", "date"))


def asked_for(accept: str) -> bool:
    return "as=Table" in accept and "g=meta.k8s.io" in accept


def table(resource: str, found: Page) -> Raw:
    columns = (("Name", "string"), *(_POD_COLUMNS if resource == "pods" else _RUN_COLUMNS))
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": found.metadata,
        "columnDefinitions": [
            {"name": name, "type": kind, "format": "name" if name == "Name" else "", "description": "", "priority": 0}
            for name, kind in columns
        ],
        "rows": [_row(each) for each in found.items],
    }


def _row(each: Item) -> Raw:
    cells = _pod_cells(each.thing) if each.resource == "pods" else _run_cells(each.thing)
    about = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": each.metadata}
    return {"cells": [each.name, *cells], "object": about}


def _run_cells(run: Raw) -> list[Any]:
    status = run.get("status") or {}
    ending: Raw = next((each for each in status.get("conditions") or [] if each.get("type") == "Succeeded"), {})
    return [ending.get("status"), ending.get("reason"), status.get("startTime"), status.get("completionTime")]


def _pod_cells(pod: Raw) -> list[Any]:
    statuses = pod["status"].get("containerStatuses") or []
    ready = sum(bool(each.get("ready")) for each in statuses)
    restarts = sum(int(each.get("restartCount", 0)) for each in statuses)
    word = pod["status"].get("reason") or pod["status"]["phase"]
    return [f"{ready}/{len(pod['spec']['containers'])}", word, str(restarts), pod["metadata"]["creationTimestamp"]]
