"""How the one pooled client to GitLab is made: no redirects, no cookies, certificates as configured. Knows no token."""

from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx2

from hummingbird.adapters.clients.making import trusting, understood, usual
from hummingbird.domain.limits import FORGE_CONNECT_S, FORGE_IDLE_S


def made_client(ca_bundle: str, answer_s: float) -> httpx2.AsyncClient:
    """Proxies are the environment's. Raises MissingSetting."""
    timeout = httpx2.Timeout(answer_s, connect=min(answer_s, FORGE_CONNECT_S))
    # a write on a connection that GitLab closes at that moment would be uncertain: ours end earlier than servers' do
    limits = httpx2.Limits(keepalive_expiry=FORGE_IDLE_S)
    # a session's cookie of one project's bot would go along with the token of another's
    cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    with understood():
        return httpx2.AsyncClient(
            verify=trusting(ca_bundle) if ca_bundle else usual(),
            timeout=timeout,
            limits=limits,
            cookies=cookies,
            follow_redirects=False,
        )
