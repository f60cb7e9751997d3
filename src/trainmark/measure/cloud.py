"""Which instance of which cloud this is, from the metadata service that each provider runs at a fixed address.

Nobody is asked unless somebody says so. All are asked at once, by their numeric addresses, never through a proxy, and
all have one deadline. Only two things are asked for, type and region, so no account, name or credential passes by.
What comes back is believed only if it looks as that provider's answers do: a network that answers everything with a
login page names no instance.
"""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from trainmark.record.record import Cloud

DEADLINE_SECONDS = 1.0
MOST_BYTES = 1024
"""More than any token or name has."""

_TOKEN = re.compile(r"[A-Za-z0-9+/=_.-]{1,512}")
_TYPE = r"[a-z0-9-]+\.[a-z0-9-]+"
_REGION = re.compile(r"([a-z]+(?:-[a-z]+)*-?\d+[a-z]?)")


@dataclass(frozen=True)
class Question:
    """A path, and the pattern of a whole answer, whose only group is what is kept of it."""

    path: str
    answer: re.Pattern[str]


@dataclass(frozen=True)
class Session:
    """Where a service hands out a token first: it is asked by PUT, and lives for seconds.

    Args:
        lifetime: name of the header that asks for so many of them.
        header: name of the one that the token is sent in.
    """

    lifetime: str
    header: str
    path: str = "/latest/api/token"


@dataclass(frozen=True)
class Service:
    """A provider's metadata service.

    Args:
        address: URL without a path.
        headers: sent with every question.
        signed: a header, and its value, that every true answer carries.
    """

    provider: str
    address: str
    instance_type: Question
    region: Question
    headers: Mapping[str, str] = field(default_factory=dict)
    session: Session | None = None
    signed: tuple[str, str] | None = None


_LINK_LOCAL = "http://169.254.169.254"
_AZURE = "/metadata/instance/compute/{}?api-version=2021-02-01&format=text"

SERVICES = (
    Service(
        "aws",
        _LINK_LOCAL,
        Question("/latest/meta-data/instance-type", re.compile(f"({_TYPE})")),
        Question("/latest/meta-data/placement/region", _REGION),
        session=Session("X-aws-ec2-metadata-token-ttl-seconds", "X-aws-ec2-metadata-token"),
    ),
    Service(
        "azure",
        _LINK_LOCAL,
        Question(_AZURE.format("vmSize"), re.compile(r"([A-Z][A-Za-z]+_[A-Za-z0-9_-]+)")),
        Question(_AZURE.format("location"), re.compile(r"([a-z]+[a-z0-9]*)")),
        {"Metadata": "true"},
    ),
    Service(
        "google",
        _LINK_LOCAL,
        # The rest of the path holds the number of the project, which is nobody's business.
        Question("/computeMetadata/v1/instance/machine-type", re.compile(r"projects/\d+/machineTypes/([a-z0-9-]+)")),
        Question("/computeMetadata/v1/instance/zone", re.compile(r"projects/\d+/zones/([a-z]+-[a-z]+\d+)-[a-z]")),
        {"Metadata-Flavor": "Google"},
        signed=("Metadata-Flavor", "Google"),
    ),
    Service(
        "oracle",
        _LINK_LOCAL,
        Question("/opc/v2/instance/shape", re.compile(r"((?:VM|BM)\.[A-Za-z0-9.-]+)")),
        Question("/opc/v2/instance/canonicalRegionName", _REGION),
        {"Authorization": "Bearer Oracle"},
    ),
    Service(
        "alibaba",
        "http://100.100.100.200",
        Question("/latest/meta-data/instance/instance-type", re.compile(rf"(ecs\.{_TYPE})")),
        Question("/latest/meta-data/region-id", re.compile(r"([a-z]+(?:-[a-z0-9]+)+)")),
        session=Session("X-aliyun-ecs-metadata-token-ttl-seconds", "X-aliyun-ecs-metadata-token"),
    ),
)


@dataclass(frozen=True)
class Heard:
    """What came of asking: the instance, or None, and a sentence for people either way."""

    cloud: Cloud | None
    said: str


def ask(services: Iterable[Service] = SERVICES, seconds: float = DEADLINE_SECONDS) -> Heard:
    """Ask all ``services`` at once, and wait no longer than ``seconds`` for all of them together."""
    services = tuple(services)
    deadline = time.monotonic() + seconds
    answers: dict[str, Cloud] = {}
    threads = [
        threading.Thread(target=_ask_one, args=(service, deadline, answers), name=service.provider, daemon=True)
        for service in services
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    found = list(answers.values())  # who answers later is not heard
    if len(found) == 1:
        return Heard(found[0], f"this is {found[0].title}, as its metadata service says")
    asked = ", ".join(service.provider for service in services)
    why = (
        f"several metadata services answered ({', '.join(each.title for each in found)}), so none is believed"
        if found
        else f"no metadata service of a cloud answered within {seconds:g} s ({asked})"
    )
    return Heard(None, f"{why}; the records name no instance")


def _ask_one(service: Service, deadline: float, answers: dict[str, Cloud]) -> None:
    """Put what ``service`` says into ``answers``: the type as soon as it is known, then the region, too."""
    try:
        headers = dict(service.headers)
        if service.session is not None:
            lifetime = {service.session.lifetime: "60"}
            token = _request(service, "PUT", Question(service.session.path, _TOKEN), lifetime, deadline)
            headers[service.session.header] = token
        kind = _request(service, "GET", service.instance_type, headers, deadline)
        answers[service.provider] = Cloud(service.provider, kind)
        region = _request(service, "GET", service.region, headers, deadline)
        answers[service.provider] = Cloud(service.provider, kind, region)
    except (OSError, http.client.HTTPException, _Unlike):
        return  # the usual case: this is another provider's machine, or nobody's


class _Unlike(Exception):
    """An answer that this provider would not give."""


def _request(service: Service, method: str, question: Question, headers: Mapping[str, str], deadline: float) -> str:
    """One answer. Neither redirects nor proxies are followed: ``http.client`` knows of none."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    to = urlsplit(service.address)
    connection = http.client.HTTPConnection(to.hostname or "", to.port, timeout=left)
    try:
        connection.request(method, question.path, headers={"User-Agent": "trainmark", **headers})
        response = connection.getresponse()
        if response.status != http.HTTPStatus.OK:
            raise _Unlike
        if service.signed and response.headers.get(service.signed[0]) != service.signed[1]:
            raise _Unlike
        text = response.read(MOST_BYTES + 1)
    finally:
        connection.close()
    known = question.answer.fullmatch(text.decode("ascii", errors="replace").strip())
    if len(text) > MOST_BYTES or known is None:
        raise _Unlike
    return known[known.lastindex or 0]
