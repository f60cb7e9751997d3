"""Finds the values of a figure in what a command prints.

It reads lines such as ``val_loss: 0.31``, ``{'val_loss': 0.31}`` and ``val loss 31.2%``, and
progress bars, which end their lines by a carriage return.
"""

from __future__ import annotations

import re

from trainmark.execute.parent.metric_series import MetricSeries
from trainmark.record.named_metric import WantedMetric

_LONGEST_LINE = 1 << 16
"""Most bytes of a line that is not complete yet; a longer one is cut."""
_SAMPLED_BYTES = 1 << 15
"""Bytes from the start and from the end of the output in which other names are looked for."""
_MOST_NAMES = 20
"""Most names under which values are kept, and most other names in a record."""
_MOST_WORDS = 3
"""Most texts instead of numbers that are kept."""
_LOOK_BACK = 80
"""Characters before a name in which the words that belong to it are looked for."""

_NUMBER = (
    r"[-+]?(?:(?:[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?|\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
    r"|nan|inf(?:inity)?)"
)
_VALUE = (
    # A value may be quoted, or be shown by its type, as in tensor(0.31).
    rf"(?:[a-z_][\w.]*\()?['\"]?(?P<number>{_NUMBER})"
    # 9905/10000 is a share. Otherwise the number must end here: 12ms and 0,31 are others.
    r"(?:/(?P<whole>[1-9]\d*)|(?P<percent>\s*%))?(?![\w/]|[.,]\d)"
)
_SEPARATOR = r"['\"]?\s*(?P<sign>:|=|\||│|┃|->|=>|→)?\s*"
_WORDS_BEFORE = re.compile(r"((?:[A-Za-z]\w*[ /.-])*[A-Za-z]\w*[ /.-])$")
_WORD = r"[A-Za-z_][\w@/.-]{0,60}(?![\w@/.-])"
_OTHER = re.compile(rf"(?<![\w@/.-])({_WORD}(?: {_WORD})?){_SEPARATOR}{_VALUE}", re.IGNORECASE)
_COUNTED = re.compile(
    r"\b(step|epoch|iteration|iter|episode|update|batch|round)s?[\s:=\['\"#]*(\d+(?:\.\d+)?)(?![\d,])",
    re.IGNORECASE,
)
_STEERING = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
"""Colours, movements of the cursor and titles of the terminal."""
_ENDS_OF_LINES = re.compile(rb"[\r\n\x08]+")


class PrintedMetric:
    """Takes what a command prints, and keeps the values of a figure.

    Args:
        wanted: the figure.
    """

    def __init__(self, wanted: WantedMetric) -> None:
        self._wanted = wanted
        self._name = " ".join(wanted.name.split())
        name = r"\s+".join(re.escape(word) for word in wanted.name.split())
        self._pattern = re.compile(
            rf"(?<!\w)(?P<name>{name})(?!\w){_SEPARATOR}(?:{_VALUE}|(?P<other>\S{{1,40}}))",
            re.IGNORECASE,
        )
        # A line without this has no value, which is quickly seen.
        self._needle = wanted.name.split()[-1].lower().encode()
        self._pending = b""
        self._start = b""
        self._end = b""
        self._series: dict[str, MetricSeries] = {}
        self.not_numbers: list[str] = []

    def feed(self, printed: bytes) -> None:
        """Take the next bytes of the output."""
        if len(self._start) < _SAMPLED_BYTES:
            self._start += printed
        else:
            self._end = (self._end + printed)[-_SAMPLED_BYTES:]
        *lines, self._pending = _ENDS_OF_LINES.split(self._pending + printed)
        self._pending = self._pending[-_LONGEST_LINE:]
        for line in lines:
            self._read(line)

    def close(self) -> None:
        """Read the last line, which may have no end."""
        self._read(self._pending)
        self._pending = b""

    @property
    def matches(self) -> dict[str, MetricSeries]:
        """The series of the name, or those of several names that may be meant.

        The name itself comes first, then the same in other letters, then longer names that end with
        it, such as ``val loss`` for ``loss``.
        """
        folded = self._name.casefold()
        exact = {each: found for each, found in self._series.items() if each == self._name}
        alike = {each: found for each, found in self._series.items() if each.casefold() == folded}
        longer = {each: found for each, found in self._series.items() if each.endswith(self._name)}
        return exact or alike or longer or self._series

    def others(self) -> list[str]:
        """Return the names in a part of the output that have a number after them."""
        text = (self._start + b"\n" + self._end).decode(errors="replace")
        lines = re.split(r"[\r\n\x08]+", _STEERING.sub("", text))
        names: dict[str, None] = {}
        for line in lines:
            for found in _OTHER.finditer(line):
                names[found[1]] = None
        return list(names)[:_MOST_NAMES]

    def _read(self, line: bytes) -> None:
        if self._needle not in line.lower():
            return
        text = _STEERING.sub("", line.decode(errors="replace"))
        counted = _COUNTED.search(text)
        for found in self._pattern.finditer(text):
            if found["number"] is None:
                self._keep_word(found)
                continue
            name = _full_name(text, found)
            if name not in self._series and len(self._series) >= _MOST_NAMES:
                continue
            series = self._series.setdefault(name, MetricSeries(self._wanted))
            value = _value(found)
            if counted is None:
                series.add(value)
            else:
                series.add(value, float(counted[2]), counted[1].lower())
            series.percentages += found["percent"] is not None

    def _keep_word(self, found: re.Match[str]) -> None:
        """Keep what is there instead of a number; without a sign, it is only the next word."""
        if found["sign"] in (":", "=") and len(self.not_numbers) < _MOST_WORDS:
            self.not_numbers.append(found["other"])


def _full_name(text: str, found: re.Match[str]) -> str:
    """Return the name with the words before it, as in ``val loss``."""
    start = found.start("name")
    before = _WORDS_BEFORE.search(text[max(start - _LOOK_BACK, 0) : start])
    return (before[1] if before else "") + " ".join(found["name"].split())


def _value(found: re.Match[str]) -> float:
    number = float(found["number"].replace(",", ""))
    whole = found["whole"]
    return number if whole is None else number / float(whole)
