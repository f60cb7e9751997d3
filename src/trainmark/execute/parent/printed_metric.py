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
_AROUND_NAME = 1 << 11
"""Characters on each side of a name in which its values are looked for."""
_SAMPLED_BYTES = 1 << 15
"""Bytes from the start and from the end of the output in which other names are looked for."""
_MOST_NAMES = 20
"""Most names under which values are kept, and most other names in a record."""
_MOST_WORDS = 3
"""Most texts instead of numbers that are kept."""
_LOOK_BACK = 80
"""Characters before a name in which the words that belong to it are looked for."""

# All repeats are bounded, so that the time for a hostile line grows only with its length.
_NUMBER = (
    r"[-+]?(?:(?:[1-9]\d{0,2}(?:,\d{3}){1,12}(?:\.\d{0,40})?|\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})"
    r"(?:e[-+]?\d{1,4})?|nan|inf(?:inity)?)"
)
_VALUE = (
    # A value may be quoted, or be shown by its type, as in tensor(0.31).
    rf"(?:[a-z_][\w.]{{0,40}}\()?['\"]?(?P<number>{_NUMBER})"
    # 9905/10000 is a share. Otherwise the number must end here: 12ms and 0,31 are others.
    r"(?:/(?P<whole>[1-9]\d{0,40})|(?P<percent>\s{0,40}%))?(?![\w/]|[.,]\d)"
)
_SEPARATOR = r"['\"]?\s{0,40}(?:(?P<sign>:|=|\||│|┃|->|=>|→)\s{0,40})?"
_WORDS_BEFORE = re.compile(r"((?:[A-Za-z]\w*[ /.-])*[A-Za-z]\w*[ /.-])$")
_WORD = r"[A-Za-z_][\w@/.-]{0,60}(?![\w@/.-])"
_OTHER = re.compile(rf"(?<![\w@/.-])({_WORD}(?: {_WORD})?){_SEPARATOR}{_VALUE}", re.IGNORECASE)
_COUNTED = re.compile(
    r"\b(step|epoch|iteration|iter|episode|update|batch|round)s?[\s:=\['\"#]{0,40}"
    r"(\d{1,15}(?:\.\d{1,15})?)(?![\d,])",
    re.IGNORECASE,
)
_LEFT_OUT = re.compile(
    r"(?:(?i:steps?|epochs?|ep|iterations?|iter|it|episodes?|updates?|batch|rounds?)\d+"
    r"|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL)[ /.-]"
)
"""Words that are no part of a name: counts of steps and epochs, and levels of logging."""
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
        name = r"\s{1,40}".join(re.escape(word) for word in wanted.name.split())
        named = rf"(?<!\w)(?P<name>{name})(?!\w)"
        self._named = re.compile(named, re.IGNORECASE)
        self._pattern = re.compile(
            rf"{named}{_SEPARATOR}(?:{_VALUE}|(?P<other>\S{{1,40}}))", re.IGNORECASE
        )
        # A line without this has no value, which is quickly seen. Bytes have capital letters in
        # ASCII alone; with other letters, each line is decoded.
        word = wanted.name.split()[-1]
        self._needle = word.lower().encode() if word.isascii() else b""
        self._pending = b""
        self._start = b""
        self._end = b""
        self._series: dict[str, MetricSeries] = {}
        self.not_numbers: list[str] = []

    def feed(self, printed: bytes) -> None:
        """Take the next bytes of the output."""
        room = _SAMPLED_BYTES - len(self._start)
        self._start += printed[:room]
        if len(printed) > room:
            self._end = (self._end + printed[room:])[-_SAMPLED_BYTES:]
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

        Exactly this name is the one that is meant. Otherwise it may be the same name with other
        capital letters, or a longer one that ends with it, such as ``val loss`` for ``loss``.
        """
        exact = self._series.get(self._name)
        return self._series if exact is None else {self._name: exact}

    def others(self) -> list[str]:
        """Return the names in a part of the output that have a number after them."""
        text = (self._start + b"\n" + self._end).decode(errors="replace")
        lines = re.split(r"[\r\n\x08]+", _STEERING.sub("", text))
        names: dict[str, None] = {}
        for line in lines:
            for found in _OTHER.finditer(line[: 2 * _AROUND_NAME]):
                names[found[1]] = None
        return list(names)[:_MOST_NAMES]

    def _read(self, line: bytes) -> None:
        if self._needle not in line.lower():
            return
        text = self._around_name(_STEERING.sub("", line.decode(errors="replace")))
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

    def _around_name(self, text: str) -> str:
        """Return a line, or the part of a long one around the last name in it."""
        if len(text) <= 2 * _AROUND_NAME:
            return text
        at = max((each.start() for each in self._named.finditer(text)), default=0)
        return text[max(at - _AROUND_NAME, 0) : at + _AROUND_NAME]

    def _keep_word(self, found: re.Match[str]) -> None:
        """Keep what is there instead of a number; without a sign, it is only the next word."""
        if found["sign"] in (":", "=") and len(self.not_numbers) < _MOST_WORDS:
            self.not_numbers.append(found["other"])


def _full_name(text: str, found: re.Match[str]) -> str:
    """Return the name with the words before it, as in ``val loss``."""
    start = found.start("name")
    before = _WORDS_BEFORE.search(text[max(start - _LOOK_BACK, 0) : start])
    words = re.findall(r"\w+\W", before[1]) if before else []
    kept = (word for word in words if not _LEFT_OUT.fullmatch(word))
    return "".join(kept) + " ".join(found["name"].split())


def _value(found: re.Match[str]) -> float:
    number = float(found["number"].replace(",", ""))
    whole = found["whole"]
    return number if whole is None else number / float(whole)
