"""What telling many viewers may cost."""

import time

from hummingbird.domain.web_limits import LIVE_LATEST_S, LIVE_SHARE, LIVE_WRITE_CPU_S


class Pace:
    """A share of what this process does at all, so that runs lose no more than that to
    those who look, however slow the machine is. Nobody waits for longer than LIVE_LATEST_S."""

    def __init__(self) -> None:
        self._began, self._spent = time.process_time(), 0.0

    def grants(self, writes: int, waited_s: float) -> bool:
        earned = LIVE_SHARE * (time.process_time() - self._began)
        if self._spent > earned and waited_s < LIVE_LATEST_S:
            return False
        self._spent = max(self._spent, earned) + writes * LIVE_WRITE_CPU_S  # what was not used is not saved up
        return True
