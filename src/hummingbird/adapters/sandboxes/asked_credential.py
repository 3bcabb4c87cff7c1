"""A token that a program of the operator prints, such as a cloud's login, as kubeconfig calls for it.

lightkube's own would hand that program our whole environment, tokens included, and refuses what today's kubeconfigs
call the format (`client.authentication.k8s.io/v1`).
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress

import httpx2
from lightkube.config.models import UserExec

from hummingbird.domain.errors import SandboxUnavailable
from hummingbird.domain.text import shortened


class AskedCredential(httpx2.Auth):
    """Asks again when the token is refused."""

    def __init__(self, program: UserExec, environment: Mapping[str, str]) -> None:
        self._program = program
        self._environment = environment
        self._token = ""

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
            response = yield request
            if response.status_code != httpx2.codes.UNAUTHORIZED:
                return
        self._token = await self._asked()
        request.headers["Authorization"] = f"Bearer {self._token}"
        yield request

    async def _asked(self) -> str:
        """Raises SandboxUnavailable."""
        out, words = await self._printed()
        try:
            return str(json.loads(out)["status"]["token"])
        except (ValueError, KeyError, TypeError):
            said = shortened(words.decode("utf-8", "replace"), 300)
            raise SandboxUnavailable(f"{self._named} gave no token: run it by hand to see why ({said}).") from None

    async def _printed(self) -> tuple[bytes, bytes]:
        about = json.dumps({"apiVersion": self._program.apiVersion, "kind": "ExecCredential", "spec": {}})
        wanted = {each.name: each.value for each in self._program.env or ()}
        try:
            process = await asyncio.create_subprocess_exec(
                self._program.command,
                *(self._program.args or ()),
                env={**self._environment, "KUBERNETES_EXEC_INFO": about, **wanted},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise SandboxUnavailable(f"{self._named} could not be started: {error.strerror}. Install it.") from error
        try:
            return await process.communicate()
        except asyncio.CancelledError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
            raise

    @property
    def _named(self) -> str:
        return f"The kubeconfig's credential program {self._program.command!r}"
