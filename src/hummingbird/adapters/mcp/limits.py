"""What a server may cost. Each of them is somebody else's program."""

from dataclasses import dataclass

TOOLS = 64  # of one server that are offered
PAGES = 32  # of its list that are read
DESCRIPTION_CHARS = 1_024
SCHEMA_BYTES = 8 * 1024
SENTENCES = 24  # of trouble that are kept of one server
QUOTED_CHARS = 200  # of a server's words in a sentence of ours
STDERR_BYTES = 8 * 1024  # kept of what it writes there, the end
UNREADABLE_LINES = 1_000  # on stdout before it is no MCP server to us
PROGRESS_EVERY_S = 0.1
PROGRESS_CHARS = 200
ABANDONING_S = 0.05  # that an interrupt waits for the word of it to be sent


@dataclass(frozen=True, slots=True)
class Bounds:
    """`leaving_s`: for a server to end by itself after its input has ended; `close_s`: for all of it to be gone.
    `back_off_s`: before the first, the second … restart after a failure; as many as there are numbers, and counted
    anew once nothing has failed for `steady_s`."""

    open_s: float = 10.0
    leaving_s: float = 0.3
    close_s: float = 0.9
    message_bytes: int = 16 * 1024 * 1024
    result_bytes: int = 4 * 1024 * 1024
    back_off_s: tuple[float, ...] = (0.0, 1.0, 2.0, 4.0)
    steady_s: float = 60.0


BOUNDS = Bounds()
