"""Pod Security admission at level "restricted": what a pod must say of itself to be let in.

The sentences are the real ones, so that a person who reads them in a log knows them from their cluster.
"""

from collections.abc import Iterator

from hummingbird.lab.kubernetes_api.access import Raw, forbidden_error

ENFORCE = "pod-security.kubernetes.io/enforce"
_VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
_SECCOMP = {"RuntimeDefault", "Localhost"}


def admit(name: str, spec: Raw, level: str) -> None:
    found = list(_violations(spec)) if level == "restricted" else []
    if found:
        raise forbidden_error("pods", name, f'violates PodSecurity "restricted:latest": {", ".join(found)}')


def _violations(spec: Raw) -> Iterator[str]:
    yield from _host(spec)
    yield from _privileges(spec)
    yield from _volume_kinds(spec)
    yield from _user(spec)
    yield from _seccomp(spec)


def _host(spec: Raw) -> Iterator[str]:
    shared = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if spec.get(field)]
    if shared:
        yield f"host namespaces ({', '.join(shared)})"
    ports = [
        str(port["hostPort"]) for each in spec["containers"] for port in each.get("ports") or [] if port.get("hostPort")
    ]
    if ports:
        yield f"hostPort ({_containers(spec)} uses hostPort {', '.join(ports)})"
    if paths := [f'"{volume["name"]}"' for volume in spec.get("volumes") or [] if "hostPath" in volume]:
        yield f"hostPath volumes (volume {', '.join(paths)})"


def _privileges(spec: Raw) -> Iterator[str]:
    if bad := [each for each in spec["containers"] if _context(each).get("privileged")]:
        yield f"privileged ({_named(bad)} must not set securityContext.privileged=true)"
    if bad := [each for each in spec["containers"] if _context(each).get("allowPrivilegeEscalation") is not False]:
        yield (
            f"allowPrivilegeEscalation != false ({_named(bad)} must set securityContext.allowPrivilegeEscalation=false)"
        )
    said = [*_undropped(spec), *_added(spec)]
    if said:
        yield f"unrestricted capabilities ({'; '.join(said)})"


def _undropped(spec: Raw) -> Iterator[str]:
    bad = [each for each in spec["containers"] if "ALL" not in (_capabilities(each).get("drop") or [])]
    if bad:
        yield f'{_named(bad)} must set securityContext.capabilities.drop=["ALL"]'


def _added(spec: Raw) -> Iterator[str]:
    for each in spec["containers"]:
        if extra := [f'"{name}"' for name in _capabilities(each).get("add") or [] if name != "NET_BIND_SERVICE"]:
            yield f"{_named([each])} must not include {', '.join(extra)} in securityContext.capabilities.add"


def _volume_kinds(spec: Raw) -> Iterator[str]:
    for volume in spec.get("volumes") or []:
        for kind in volume:
            if kind != "name" and kind not in _VOLUMES:
                yield f'restricted volume types (volume "{volume["name"]}" uses restricted volume type "{kind}")'


def _user(spec: Raw) -> Iterator[str]:
    pod = spec.get("securityContext") or {}
    bad = [each for each in spec["containers"] if not _context(each).get("runAsNonRoot", pod.get("runAsNonRoot"))]
    if bad:
        yield f"runAsNonRoot != true (pod or {_named(bad)} must set securityContext.runAsNonRoot=true)"
    if pod.get("runAsUser") == 0:
        yield "runAsUser=0 (pod must not set runAsUser=0)"
    if bad := [each for each in spec["containers"] if _context(each).get("runAsUser") == 0]:
        yield f"runAsUser=0 ({_named(bad)} must not set runAsUser=0)"


def _seccomp(spec: Raw) -> Iterator[str]:
    pod = (spec.get("securityContext") or {}).get("seccompProfile") or {}
    bad = [
        each for each in spec["containers"] if (_context(each).get("seccompProfile") or pod).get("type") not in _SECCOMP
    ]
    if bad:
        words = 'must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
        yield f"seccompProfile (pod or {_named(bad)} {words})"


def _context(container: Raw) -> Raw:
    return container.get("securityContext") or {}


def _capabilities(container: Raw) -> Raw:
    return _context(container).get("capabilities") or {}


def _containers(spec: Raw) -> str:
    return _named(spec["containers"])


def _named(containers: list[Raw]) -> str:
    names = ", ".join(f'"{each["name"]}"' for each in containers)
    return f"container{'s' if len(containers) > 1 else ''} {names}"
