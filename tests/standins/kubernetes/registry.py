"""Pods as the API keeps them: made, changed and deleted by the rules, for clients and controllers alike."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hummingbird.lab.kubernetes_api.access import Raw, bad_request_error, forbidden_error
from tests.standins.kubernetes import pod_security, pods
from tests.standins.kubernetes.api_errors import conflict_error
from tests.standins.kubernetes.patches import patched
from tests.standins.kubernetes.store import Key, Store, timestamp

OVER = ("Succeeded", "Failed")


class Pods:
    def __init__(self, store: Store) -> None:
        self._store = store

    def create(self, namespace: str, manifest: Any) -> Raw:
        place = self._store.get(Key("namespaces", "", namespace))
        pod = pods.newborn(manifest, namespace)
        self._check_account(pod)
        level = (place["metadata"].get("labels") or {}).get(pod_security.ENFORCE, "privileged")
        pod_security.admit(pod["metadata"]["name"], pod["spec"], level)
        return self._store.create("pods", pod)

    def _check_account(self, pod: Raw) -> None:
        """The stand-in knows no service account but the one that every namespace has."""
        name, account = pod["metadata"]["name"], pod["spec"]["serviceAccountName"]
        if account != "default":
            place = pod["metadata"]["namespace"]
            missing = f'error looking up service account {place}/{account}: serviceaccount "{account}" not found'
            raise forbidden_error("pods", name, missing)

    def patch(self, key: Key, patch: Any, media_type: str) -> Raw:
        current = self._store.get(key)
        return self._store.replace(key, pods.changed(current, patched(current, patch, media_type)))

    def delete(self, key: Key, options: Raw) -> Raw:
        """At once with grace 0, and where nothing runs; else the kubelet removes what this marks."""
        pod = self._store.get(key)
        _check_preconditions(pod, options.get("preconditions") or {})
        grace = _grace(pod, options.get("gracePeriodSeconds"))
        if grace == 0:
            gone = self._store.remove(key, pod["metadata"]["uid"]) or pod
            gone["metadata"] |= {"deletionTimestamp": timestamp(), "deletionGracePeriodSeconds": 0}
            return gone
        before = pod["metadata"].get("deletionGracePeriodSeconds")
        if before is not None and before <= grace:
            return pod
        pod["metadata"]["deletionTimestamp"] = timestamp(datetime.now(UTC) + timedelta(seconds=grace))
        pod["metadata"]["deletionGracePeriodSeconds"] = grace
        return self._store.replace(key, pod)


def _check_preconditions(pod: Raw, wanted: Raw) -> None:
    for field, word, why in (
        ("uid", "UID", "The object might have been deleted and then recreated"),
        ("resourceVersion", "ResourceVersion", "The object might have been modified"),
    ):
        given, mine = wanted.get(field), pod["metadata"][field]
        if given is not None and given != mine:
            sentence = f"the {word} in the precondition ({given}) does not match the {word} in record ({mine}). {why}"
            raise conflict_error("Pod", pod["metadata"]["name"], sentence)


def _grace(pod: Raw, asked: object) -> int:
    if asked is not None and (not isinstance(asked, int) or isinstance(asked, bool)):
        raise bad_request_error(
            "json: cannot unmarshal into Go struct field DeleteOptions.gracePeriodSeconds of type int64"
        )
    nothing_runs = not pod["spec"].get("nodeName") or pod["status"]["phase"] in OVER
    if nothing_runs:
        return 0
    grace = pod["spec"]["terminationGracePeriodSeconds"] if asked is None else asked
    return grace if grace >= 0 else 1
