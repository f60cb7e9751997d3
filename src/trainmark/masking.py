"""Mask secrets in words and text, before they are kept or shown.

A secret is recognised by its name (``--api-key X``, ``HF_TOKEN=X``, ``"password": "X"``), by the
known prefix of its value (``hf_...``), or as user info of a URL (``https://user:X@host``). Numbers
are never masked. docs/decisions/0043-secrets-are-masked-before-they-are-kept.md says why.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

MASK = "***"
"""Text that replaces a secret."""

_NAMES = frozenset(
    {
        "access_key",
        "access_key_id",
        "access_token",
        "api_key",
        "api_keys",
        "api_secret",
        "api_token",
        "apikey",
        "auth_token",
        "authorization",
        "authtoken",
        "aws_session_token",
        "bearer_token",
        "bot_token",
        "client_secret",
        "credential",
        "credentials",
        "gh_token",
        "github_token",
        "gitlab_token",
        "hf_token",
        "hub_token",
        "hugging_face_hub_token",
        "huggingface_token",
        "id_token",
        "mysql_pwd",
        "netrc",
        "oauth_token",
        "passphrase",
        "passwd",
        "password",
        "passwords",
        "pgpassword",
        "private_key",
        "refresh_token",
        "secret",
        "secret_access_key",
        "secret_key",
        "secret_token",
        "secretkey",
        "secrets",
        "session_token",
        "slack_token",
        "token",
        "x_amz_credential",
        "x_amz_security_token",
        "x_amz_signature",
        "x_api_key",
    }
)
"""Names of secrets, in lower case with underscores. The list is exact: names such as
``token_count``, ``pad_token`` and ``secret_sauce`` are common and harmless."""
_ENDINGS = (
    "_access_key",
    "_access_token",
    "_api_key",
    "_api_secret",
    "_api_token",
    "_apikey",
    "_auth_token",
    "_client_secret",
    "_passphrase",
    "_passwd",
    "_password",
    "_private_key",
    "_secret",
    "_secret_key",
)
"""Endings that make any name a secret's, such as ``WANDB_API_KEY`` and ``db.password``. ``_token``
is none: ``pad_token`` and ``eos_token`` are harmless."""
_FLAG_STARTS = ("has_", "is_", "no_", "show_", "use_", "with_")
"""A name that starts like this is that of a switch, such as ``use_auth_token``."""
_HARMLESS = frozenset(
    {"", MASK, "true", "false", "yes", "no", "on", "off", "none", "null", "default", "str"}
)
"""Values, in lower case, that are never a secret."""

_PREFIXED = re.compile(
    r"(?<![A-Za-z0-9])(?:"
    # OpenAI, Anthropic and others; the name scikit-learn is not one.
    r"sk-(?!learn(?![A-Za-z0-9]))(?=[A-Za-z_-]*[0-9]|[A-Za-z0-9_-]{16})[A-Za-z0-9_-]{6,}"
    # Hugging Face and similar ones. A short one has a digit: hf_transformers is a name.
    r"|(?:hf|wk)_(?=[A-Za-z]*[0-9]|[A-Za-z0-9]{16})[A-Za-z0-9]{8,}(?![A-Za-z0-9_])"
    r"|hf_oauth_[A-Za-z0-9_.-]{8,}|api_org_[A-Za-z0-9]{16,}"
    r"|gh[oprsu]_[A-Za-z0-9]{6,}|github_pat_[A-Za-z0-9_]{6,}"  # GitHub
    r"|gl(?:pat|ptt|dt|rt)-[A-Za-z0-9_-]{6,}"  # GitLab
    r"|xox[abeoprs]-[A-Za-z0-9-]{6,}|xapp-[A-Za-z0-9-]{6,}"  # Slack
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}(?![0-9A-Z])"  # AWS
    r"|AIza[A-Za-z0-9_-]{35}|ya29\.[A-Za-z0-9_-]{16,}|GOCSPX-[A-Za-z0-9_-]{16,}"  # Google
    r"|[rsp]k_(?:live|test)_[A-Za-z0-9]{6,}"  # Stripe
    r"|npm_[A-Za-z0-9]{36}|pypi-[A-Za-z0-9_-]{16,}"
    r"|dckr_pat_[A-Za-z0-9_-]{6,}|dop_v1_[0-9a-f]{16,}|dapi[0-9a-f]{32}"
    r"|nvapi-[A-Za-z0-9_-]{16,}|gsk_[A-Za-z0-9]{16,}|xai-[A-Za-z0-9]{16,}|pplx-[A-Za-z0-9]{16,}"
    r"|r8_[A-Za-z0-9]{16,}|lsv2_[A-Za-z0-9_]{16,}|wandb_v1_[A-Za-z0-9_]{8,}|hvs\.[A-Za-z0-9_-]{16,}"
    r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"  # a JSON web token
    r")"
)
"""Values with a known prefix."""
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----(?P<value>.*?)(?:-----END|\Z)", re.DOTALL
)
_BEARER = re.compile(r"\bBearer\s+(?P<value>[A-Za-z0-9._~+/=-]{8,})")
_USER_INFO = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,20}://(?P<value>[^/\s?#\"'<>]+)@")

_NAME = r"[A-Za-z_][\w.-]{0,80}"
_ASSIGNED = re.compile(
    rf"(?<![\w.-])-{{0,2}}(?P<name>{_NAME})(?P<quote>\\*[\"'])?\s*(?P<sign>==?|:=?|=>)\s*"
)
"""A name and a sign, before its value: ``name=``, ``name: ``, ``"name": ``."""
_OPTION = re.compile(rf"(?<![\w-])--?(?P<name>{_NAME})(?:\s+|[\"'],\s*)(?![\s-])")
"""An option before its value: ``--name value``, or ``'--name', 'value'`` in a printed list."""
_WORD = re.compile(rf"[-+]{{0,2}}(?P<name>{_NAME})=", re.DOTALL)
"""The start of one word: ``name=``, ``--name=`` or ``++name=``."""
_QUOTED = re.compile(r"(?P<quote>\\*[\"'])(?P<quoted>(?:\\.|[^\\])*?)(?P=quote)", re.DOTALL)
_VALUE = re.compile(
    rf"{_QUOTED.pattern}"
    r"|(?P<list>\[[^\]]*\]|\{[^}]*\})"
    r"|(?P<cut>[\"'][^\n]+)"  # the closing quote is missing: the text was cut
    r"|(?:(?:Basic|Bearer|Digest|Token)\s+)?(?P<bare>[^\s\"'&]*[^\s\"'&,;:)\]}])",
    re.DOTALL,
)
_PLACEHOLDER = re.compile(r"(\{[A-Za-z_][A-Za-z0-9_]*\})")
_COMPARED = ("--vary", "--vary-env")
"""trainmark's options whose values are what it compares."""
_SHORTEST_TO_FIND = 6
"""Length from which a secret is masked wherever its value appears, also without its name. A shorter
one would blacken unrelated text."""

Span = tuple[int, int]


def is_name_of_secret(name: str) -> bool:
    """Whether a value of this name is a secret.

    Args:
        name: of an option, a variable or a key, such as ``--api-key``, ``HF_TOKEN`` or ``apiKey``.
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip("-+"))
    plain = re.sub(r"[-.]", "_", spaced).lower()
    if plain.startswith(_FLAG_STARTS):
        return False
    return plain in _NAMES or plain.endswith(_ENDINGS)


def mask(text: str) -> str:
    """Return ``text`` with all secrets in it masked."""
    return _hidden(text, _spans(text))


def mask_template(words: Sequence[str]) -> list[str]:
    """Return the words of a command with all secrets in them masked.

    Placeholders such as ``{workers}`` stay: their values are what is compared.
    """
    given = Secrets.of(words, {})
    return [
        _hidden(word, [*spans, *given.spans(word)], compares=True)
        for word, spans in _spans_of_words(words)
    ]


def mask_command_line(words: Sequence[str]) -> str:
    """Return a command line of trainmark, quoted for a shell, with all secrets masked.

    The values of ``--vary`` and ``--vary-env`` stay: they are what is compared.
    """
    own = words.index("--") if "--" in words else len(words)
    hidden = mask_template(words)
    for index, word in enumerate(words[:own]):
        after_option = index > 0 and words[index - 1] in _COMPARED
        if after_option or word.startswith(tuple(f"{option}=" for option in _COMPARED)):
            hidden[index] = word
    return shlex.join(hidden)


@dataclass(frozen=True)
class Secrets:
    """The secrets that one command was given.

    Args:
        values: their values, which are masked wherever they appear in text.
    """

    values: frozenset[str] = field(default=frozenset(), repr=False)

    @classmethod
    def of(cls, words: Sequence[str], environment: Mapping[str, str]) -> Secrets:
        """Return the secrets in the words of a command and in the variables that it inherits."""
        found = set[str]()
        for word, spans in _spans_of_words(words):
            for start, end in spans:
                value = word[start:end]
                # A program may print only the password of a URL.
                found.update({value, value.partition(":")[2]})
        found.update(value for name, value in environment.items() if is_name_of_secret(name))
        return cls(frozenset(value for value in found if _can_be_found(value)))

    def mask(self, text: str) -> str:
        """Return ``text`` with these and all other secrets in it masked."""
        return _hidden(text, [*_spans(text), *self.spans(text)])

    def spans(self, text: str) -> list[Span]:
        """Return where ``text`` has the values of these secrets."""
        spans = list[Span]()
        for value in self.values:
            place = rf"(?<![A-Za-z0-9]){re.escape(value)}(?![A-Za-z0-9])"
            spans += [found.span() for found in re.finditer(place, text)]
        return spans


def _can_be_found(value: str) -> bool:
    has_placeholder = _PLACEHOLDER.search(value) is not None
    return len(value) >= _SHORTEST_TO_FIND and not has_placeholder and not _is_harmless(value)


def _spans_of_words(words: Sequence[str]) -> Iterator[tuple[str, list[Span]]]:
    """Yield each word of a command, and where it has secrets."""
    for before, word in itertools.pairwise(["", *words]):
        start = _WORD.match(word)
        is_option = re.fullmatch(rf"--?{_NAME}", before) is not None
        if is_option and is_name_of_secret(before) and not word.startswith("-"):
            spans = _whole(word, 0)
        elif start and is_name_of_secret(start["name"]):
            spans = _whole(word, start.end())
        else:
            spans = list(_spans(word))
        yield word, spans


def _whole(word: str, start: int) -> list[Span]:
    """Return the rest of a word from ``start`` on, if that can be a secret."""
    return [] if _is_harmless(word[start:]) else [(start, len(word))]


def _spans(text: str) -> Iterator[Span]:
    """Yield where ``text`` has secrets; they may overlap."""
    for found in _PREFIXED.finditer(text):
        yield found.span()
    for pattern in (_PRIVATE_KEY, _BEARER, _USER_INFO):
        for found in pattern.finditer(text):
            yield found.span("value")
    for pattern in (_ASSIGNED, _OPTION):
        yield from _named(text, pattern)


def _named(text: str, pattern: re.Pattern[str]) -> Iterator[Span]:
    """Yield where ``text`` has values of secret names."""
    at = 0
    while found := pattern.search(text, at):
        at = found.end()
        if is_name_of_secret(found["name"]) and not _is_prose(found):
            for span in _value_at(text, at):
                yield span
                # Searching inside the value again would take quadratic time.
                at = span[1]


def _is_prose(found: re.Match[str]) -> bool:
    """Whether this is an error such as ``invalid token: ')'`` rather than a name and its value."""
    signs = found.groupdict()
    return found["name"] == "token" and signs.get("sign") == ":" and not signs.get("quote")


def _value_at(text: str, start: int) -> list[Span]:
    """Return what to mask of the value that starts here."""
    found = _VALUE.match(text, start)
    if found is None or found.lastgroup is None:
        return []
    value = found[found.lastgroup]
    if found.lastgroup == "list":
        return _spans_of_list(value, found.start())
    return [] if _is_harmless(value) else [found.span(found.lastgroup)]


def _spans_of_list(value: str, start: int) -> list[Span]:
    """Return where a printed list or mapping has texts; JSON must stay JSON."""
    texts = [each.span("quoted") for each in _QUOTED.finditer(value)]
    if not texts and re.search(r"[^\W\d]", value):  # anything but numbers
        texts = [(1, len(value) - 1)]
    return [(start + first, start + end) for first, end in texts]


def _is_harmless(value: str) -> bool:
    """Whether a value is a number, a switch, empty, or masked already."""
    if value.lower() in _HARMLESS:
        return True
    with contextlib.suppress(ValueError):
        float(value)
        return True
    with contextlib.suppress(ValueError):
        int(value, 0)  # such as 0x1f
        return True
    return False


def _hidden(text: str, spans: Iterable[Span], *, compares: bool = False) -> str:
    """Return ``text`` with its ``spans`` masked.

    Args:
        compares: keep the placeholders inside.
    """
    shown = []
    at = 0
    for start, end in sorted(spans):
        if end <= at:
            continue
        start = max(start, at)
        shown += [text[at:start], _masked(text[start:end], compares=compares)]
        at = end
    return "".join([*shown, text[at:]])


def _masked(secret: str, *, compares: bool) -> str:
    parts = _PLACEHOLDER.split(secret) if compares else [secret]
    return "".join(
        part if compares and _PLACEHOLDER.fullmatch(part) else MASK for part in parts if part
    )
