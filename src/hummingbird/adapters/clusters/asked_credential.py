"""A credential that a program of the operator prints, such as a cloud's login, as kubeconfig calls for it.

lightkube's own would hand that program our whole environment, tokens included, and refuses what today's kubeconfigs
call the format (`client.authentication.k8s.io/v1`).
"""

import asyncio
import json
import ssl
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from lightkube.config.models import UserExec

from hummingbird.domain.errors import ClusterUnusable
from hummingbird.domain.limits import CREDENTIAL_PROGRAM_S


class AskedCredential:
    """Asks again when the token is refused. A client certificate that the program prints joins `trust`, and so every
    connection that is made from then on."""

    def __init__(self, program: UserExec, environment: Mapping[str, str], trust: ssl.SSLContext | None = None) -> None:
        self._program = program
        self._environment = environment
        self._trust = trust
        self._value = ""
        self._known = False
        self._asking = asyncio.Lock()

    async def value(self, refused: str = "") -> str:
        async with self._asking:  # calls side by side share one answer
            if not self._known or (refused and self._value == refused):
                self._value, self._known = await self._asked(), True
            return self._value

    async def _asked(self) -> str:
        """Raises ClusterUnusable."""
        out, code = await self._printed()
        status = _status(out)
        token, certificate = status.get("token"), status.get("clientCertificateData")
        if certificate and self._trust is not None:
            self._present(str(certificate), str(status.get("clientKeyData") or ""))
        elif not token:
            # what it complains of may hold a token or a login's address, so that is not repeated
            raise ClusterUnusable(f"{self._named} gave no token: run it by hand to see why (it ended with {code}).")
        return f"Bearer {token}" if token else ""

    def _present(self, certificate: str, key: str) -> None:
        """OpenSSL takes them from a file alone; it is for our eyes only and gone at once."""
        assert self._trust is not None
        try:
            with tempfile.NamedTemporaryFile("w", encoding="ascii") as file:
                file.write(f"{certificate}\n{key}\n")
                file.flush()
                self._trust.load_cert_chain(file.name)
        except (OSError, ValueError) as error:
            raise ClusterUnusable(f"{self._named} gave a certificate that cannot be used: run it by hand.") from error

    async def _printed(self) -> tuple[bytes, int | None]:
        """What it says, and the code with which it ends."""
        about = {
            "apiVersion": self._program.apiVersion,
            "kind": "ExecCredential",
            "spec": {"interactive": False},
        }
        wanted = {each.name: each.value for each in self._program.env or ()}
        try:
            process = await asyncio.create_subprocess_exec(
                self._program.command,
                *(self._program.args or ()),
                env={**self._environment, "KUBERNETES_EXEC_INFO": json.dumps(about), **wanted},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except OSError as error:
            raise ClusterUnusable(f"{self._named} could not be started: {error.strerror}. Install it.") from error
        try:
            async with asyncio.timeout(CREDENTIAL_PROGRAM_S):
                out, _ = await process.communicate()
                return out, process.returncode
        except TimeoutError:
            raise ClusterUnusable(
                f"{self._named} gave nothing for {CREDENTIAL_PROGRAM_S:.0f} s: run it by hand to see what it waits for."
            ) from None
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
            assert process.stdout is not None
            transport: asyncio.SubprocessTransport = process._transport  # type: ignore[attr-defined]  # the only way to it
            if (output := transport.get_pipe_transport(1)) is not None:
                output.close()  # a child of it may hold it, and asyncio would wait for that one
            await process.stdout.read()
            await process.wait()

    @property
    def _named(self) -> str:
        return f"The kubeconfig's credential program {self._program.command!r}"


def _status(printed: bytes) -> dict[str, Any]:
    try:
        status = json.loads(printed)["status"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return status if isinstance(status, dict) else {}
