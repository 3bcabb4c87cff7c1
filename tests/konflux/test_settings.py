"""Where Konflux is: the tenant's path is required, the web interface is derived."""

import pytest

from hummingbird.core.errors import UsageError
from hummingbird.konflux import KonfluxSettings, KonfluxTenant, parse_tenant

API = "https://api.kflux.example.com:6443/ns/acme-tenant"


def test_all_that_is_needed_follows_from_the_clusters_address() -> None:
    assert parse_tenant(KonfluxSettings(API)) == KonfluxTenant(
        server="https://api.kflux.example.com:6443",
        namespace="acme-tenant",
        archive="",
        ui="https://konflux-ui.apps.kflux.example.com/ns/acme-tenant",
    )


def test_the_web_interface_follows_from_the_documented_address() -> None:
    tenant = parse_tenant(KonfluxSettings("https://example.com:6443/ns/my-tenant"))
    assert tenant.ui == "https://konflux-ui.apps.example.com/ns/my-tenant"


@pytest.mark.parametrize(
    ("ui_url", "ui"),
    [
        ("https://ui.example", "https://ui.example/ns/acme-tenant"),
        ("https://ui.example/konflux/", "https://ui.example/konflux/ns/acme-tenant"),
        ("https://ui.example/ns/other/", "https://ui.example/ns/other"),
    ],
)
def test_a_web_interface_that_is_told_overrides_the_derived_one(ui_url: str, ui: str) -> None:
    assert parse_tenant(KonfluxSettings(API, ui_url=ui_url)).ui == ui


@pytest.mark.parametrize("host", ["api:6443", "127.0.0.1:1", "[::1]:1", "localhost:6443"])
def test_where_nothing_can_be_derived_nothing_is_claimed(host: str) -> None:
    assert parse_tenant(KonfluxSettings(f"https://{host}/ns/t/")).ui == ""


def test_an_archive_may_stand_behind_a_path() -> None:
    settings = KonfluxSettings(API, kubearchive_url="https://proxy.example/plugins/kubearchive/")
    assert parse_tenant(settings).archive == "https://proxy.example/plugins/kubearchive"


@pytest.mark.parametrize(
    "url",
    [
        "https://api.example:6443",
        "https://api.example:6443/",
        "https://api.example:6443/ns/",
        "https://api.example:6443/ns/Tenant",
        "https://api.example:6443/ns/a/b",
        "https://api.example:6443/x/ns/a",
        "https://api.example:6443/ns/..",
    ],
)
def test_a_cluster_without_its_tenant_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(UsageError, match=r"write it like https://api.cluster.example:6443/ns/TENANT"):
        parse_tenant(KonfluxSettings(url))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "api.example/ns/t",
        "ftp://api.example/ns/t",
        "https:///ns/t",
        "https://[::1/ns/t",
        "https://h:x/ns/t",
        "https://me:secret@api.example/ns/t",
        "https://api.example/ns/t?x=1",
        "https://api.example/ns/t#x",
        "https://api.example/ns/t\n",
        "https://api.example\\@evil.example/ns/t",
    ],
)
def test_what_is_no_plain_address_is_refused_and_not_repeated(url: str) -> None:
    for settings in (KonfluxSettings(url), *((KonfluxSettings(API, kubearchive_url=url),) if url else ())):
        with pytest.raises(UsageError, match="fix it") as refusal:
            parse_tenant(settings)
        assert "secret" not in str(refusal.value)
