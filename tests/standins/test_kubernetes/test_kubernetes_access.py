"""Who may what: the sandboxes' role is enough, and is all there is."""

import httpx2
import pytest

from tests.standins.test_kubernetes.stage import Place, pod, refused


def account(place: Place) -> str:
    return f"system:serviceaccount:{place.name}:hummingbird"


def test_the_role_holds_what_sandboxes_need(paper: Place) -> None:
    paper.made(pod("one", paper.image))
    codes = [
        paper.get("one").status_code,
        paper.http.get(paper.path).status_code,
        paper.patch("one", {"metadata": {"labels": {"a": "b"}}}).status_code,
        paper.delete("one").status_code,
    ]
    assert codes == [200] * 4
    mine = [each for each in paper.lab.requests if each.user == account(paper)]
    assert [each.verb for each in mine] == ["create", "get", "list", "patch", "delete"]
    assert {(each.resource, each.namespace, each.allowed) for each in mine} == {("pods", paper.name, True)}


@pytest.mark.parametrize(
    ("method", "path", "said"),
    [
        ("GET", "/api/v1/pods", 'pods is forbidden: User "{me}" cannot list resource "pods" in API group "" at the'),
        ("GET", "/api/v1/namespaces", 'namespaces is forbidden: User "{me}" cannot list resource "namespaces"'),
        ("GET", "/api/v1/namespaces/{ns}", 'namespaces "{ns}" is forbidden: User "{me}" cannot get resource'),
        ("GET", "/api/v1/nodes", 'nodes is forbidden: User "{me}" cannot list resource "nodes" in API group ""'),
        ("GET", "/api/v1/namespaces/kube-system/pods", 'in API group "" in the namespace "kube-system"'),
        ("GET", "/api/v1/namespaces/{ns}/secrets", 'secrets is forbidden: User "{me}" cannot list resource "secrets"'),
        ("GET", "/api/v1/namespaces/{ns}/pods?watch=true", 'cannot watch resource "pods" in API group ""'),
        ("DELETE", "/api/v1/namespaces/{ns}/pods", 'cannot deletecollection resource "pods"'),
        ("PUT", "/api/v1/namespaces/{ns}/pods/one", 'pods "one" is forbidden: User "{me}" cannot update resource'),
        ("GET", "/api/v1/namespaces/{ns}/pods/one/log", 'cannot get resource "pods/log"'),
        (
            "POST",
            "/apis/apps/v1/namespaces/{ns}/deployments",
            'cannot create resource "deployments" in API group "apps"',
        ),
        ("GET", "/apis/apps/v1/namespaces/{ns}/pods", 'cannot list resource "pods" in API group "apps"'),
        ("GET", "/metrics", 'forbidden: User "{me}" cannot get path "/metrics"'),
    ],
)
def test_all_else_is_forbidden_and_written_down(paper: Place, method: str, path: str, said: str) -> None:
    paper.made(pod("one", paper.image))
    answer = paper.http.request(method, path.replace("{ns}", paper.name), json={})
    words = said.replace("{ns}", paper.name).replace("{me}", account(paper))
    assert words in refused(answer, 403, "Forbidden")
    assert not paper.lab.requests[-1].allowed
    assert paper.get("one").status_code == 200


def test_a_role_can_be_narrowed(paper: Place) -> None:
    paper.lab.narrow(paper.token, {"pods": ["get", "list"]})
    assert paper.list() == []
    said = refused(paper.create(pod("one", paper.image)), 403, "Forbidden")
    assert f'User "{account(paper)}" cannot create resource "pods"' in said


def test_a_wrong_token_is_unauthorized_and_none_is_anonymous(paper: Place) -> None:
    wrong = paper.http.get(paper.path, headers={"Authorization": "Bearer wrong"})
    assert refused(wrong, 401, "Unauthorized") == "Unauthorized"
    nobody = httpx2.get(paper.lab.url + paper.path, verify=False)
    assert 'User "system:anonymous" cannot list' in refused(nobody, 403, "Forbidden")


def test_a_token_in_the_address_is_as_good_as_one_in_the_header(paper: Place) -> None:
    """kubectl sends no token over plain HTTP."""
    answer = httpx2.get(paper.lab.url_for(paper.token) + paper.path, verify=False)
    assert answer.status_code == 200
    assert paper.lab.requests[-1].user == account(paper)


def test_the_administrator_may_all_but_what_is_not_played(paper: Place) -> None:
    headers = {"Authorization": f"Bearer {paper.lab.admin_token()}"}
    listed = httpx2.get(f"{paper.lab.url}/api/v1/namespaces", headers=headers, verify=False).json()
    assert paper.name in [each["metadata"]["name"] for each in listed["items"]]
    nodes = httpx2.get(f"{paper.lab.url}/api/v1/nodes", headers=headers, verify=False)
    assert refused(nodes, 404, "NotFound") == "the server could not find the requested resource"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/api", "APIVersions"),
        ("/apis", "APIGroupList"),
        ("/api/v1", "APIResourceList"),
        ("/apis/apps/v1", "APIResourceList"),
    ],
)
def test_whoever_is_known_may_ask_what_there_is(paper: Place, path: str, kind: str) -> None:
    assert paper.http.get(path).json()["kind"] == kind
