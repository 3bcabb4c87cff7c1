"""A list on the screen from which one row is chosen: arrows move, typing filters, Enter chooses, Esc cancels."""

import asyncio
from collections.abc import Sequence

from prompt_toolkit.formatted_text import StyleAndTextTuples

from hummingbird.chat.screen import fit_line, printable_text


class Picker:
    """An open list; `result` becomes the number of the chosen row, or None."""

    def __init__(self, title: str, rows: Sequence[str]) -> None:
        self.title = title
        self._rows = [" ".join(printable_text(row).split("\n")) for row in rows]
        self._searched = [row.casefold() for row in self._rows]
        self._selected = 0
        self.result: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

    def find_matches(self, typed: str) -> list[int]:
        """Return the numbers of the rows that contain all the words."""
        words = typed.casefold().split()
        return [at for at, row in enumerate(self._searched) if all(word in row for word in words)]

    def move(self, step: int, typed: str) -> None:
        found = self.find_matches(typed)
        self._selected = max(0, min(len(found) - 1, min(self._selected, len(found) - 1) + step))

    def choose(self, typed: str) -> None:
        found = self.find_matches(typed)
        if found and not self.result.done():
            self.result.set_result(found[min(self._selected, len(found) - 1)])

    def cancel(self) -> None:
        if not self.result.done():
            self.result.set_result(None)

    def lines(self, typed: str, columns: int, height: int) -> StyleAndTextTuples:
        """Return what is shown: the title, as many rows as fit around the selected one, and the keys."""
        found = self.find_matches(typed)
        selected = max(0, min(self._selected, len(found) - 1))
        room = max(1, height - 2)
        first = max(0, min(selected - room // 2, len(found) - room))
        lines: StyleAndTextTuples = [("class:question", fit_line(self.title, columns))]
        for at in range(first, min(first + room, len(found))):
            mark, style = ("❯ ", "class:chosen") if at == selected else ("  ", "class:choice")
            lines.append((style, fit_line(mark + self._rows[found[at]], columns)))
        count = f"{len(found)} of {len(self._rows)}" if found else "nothing matches"
        lines.append(("class:live", fit_line(f"  {count} · type to filter · Enter chooses · Esc cancels", columns)))
        return lines
