"""The document of a workspace's alerts: endpoints, and rules that select events for them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import urlsplit

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from resolute.contracts.documents.document import read_document
from resolute.contracts.documents.faults import ConfigError, Fault
from resolute.contracts.documents.rejections import faults_of, reject
from resolute.contracts.documents.section import Flag, Name, Number, Section, Text
from resolute.contracts.documents.variants import choose
from resolute.errors import InvalidArgumentError, Violation

HIDDEN = "(hidden)"
"""In place of a secret; a document that has it keeps the secret that is stored."""
OF_CLUSTER = frozenset({"problem", "token", "certificate"})
"""Kinds of rules that only the alerts of the cluster may have."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_STATES = ("ACTIVE", "PAUSED", "COMPLETED", "CANCELED", "ERROR", "QUEUED", "RUNNING")


def _url(url: str) -> str:
    if url == HIDDEN:
        return url
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or "@" in parts.netloc:
        raise reject("an http or https URL without a user in it")
    return url


Url: TypeAlias = Annotated[Text, AfterValidator(_url)]


def _endpoint_name(name: str) -> str:
    # Deliveries have it in a column of the database, which takes neither more characters nor all of them.
    if not _NAME.fullmatch(name):
        raise reject("at most 100 letters, digits, '.', '_' and '-', the first a letter or a digit")
    return name


def _address(address: str) -> str:
    name, at, domain = address.partition("@")
    if not (name and at and domain) or any(c.isspace() or c in ',;<>"' for c in address):
        raise reject("the address of a mailbox, such as team@example.org")
    return address


class Endpoint(Section):
    """The fields of every endpoint.

    Attributes:
        name: Name of the endpoint in rules: at most 100 letters, digits, ``.``, ``_`` and ``-``.
        type: Kind of endpoint.
        only_named: Whether only experiments that name the endpoint in ``integrations.webhooks`` use it.
    """

    name: Annotated[Text, AfterValidator(_endpoint_name)]
    type: Text
    only_named: Flag = False


class Webhook(Endpoint):
    """A server that accepts JSON.

    Attributes:
        url: URL to which the JSON is posted.
        secret: Key of the signature in ``X-Resolute-Signature``; empty for none.
    """

    type: Literal["webhook"] = "webhook"
    url: Url
    secret: Text = ""


class Chat(Endpoint):
    """The incoming webhook of a chat. Its URL is a secret.

    Attributes:
        url: URL of the webhook.
    """

    type: Literal["slack", "teams", "discord"]
    url: Url


class Mail(Endpoint):
    """One or several mailboxes.

    Attributes:
        to: Addresses of the mailboxes.
    """

    type: Literal["email"] = "email"
    to: Annotated[tuple[Annotated[Text, AfterValidator(_address)], ...], Field(min_length=1, max_length=50)]


_ENDPOINTS: Mapping[str, type[Section]] = {
    "webhook": Webhook,
    "slack": Chat,
    "teams": Chat,
    "discord": Chat,
    "email": Mail,
}
AnyEndpoint: TypeAlias = Annotated[
    Webhook | Chat | Mail, BeforeValidator(choose("type", common=Endpoint, variants=_ENDPOINTS))
]


class Rule(Section):
    """A rule that sends some events to some endpoints.

    Attributes:
        on: What happens: ``experiment`` or ``trial`` gets into a state, ``alert`` is raised by a script,
            ``log_policy`` matched a line, nothing of a run moves for ``hang``, ``guard`` found a bad report,
            the GPUs of a run are ``idle``,
            ``metric`` of the search passes a bound, ``queue_wait`` of a trial is long, ``quota`` of a
            workspace is used up, ``node_lost`` for a run or a pool, ``problem`` of the cluster, such as a
            disk that is full, ``token`` or ``certificate`` ends soon.
        to: Names of endpoints.
        states: States of experiments or trials that cause an alert.
        above: For ``metric``: upper bound; an alert is sent when the last value is above it.
        below: For ``metric``: lower bound; an alert is sent when the last value is below it.
        nan: For ``metric``: whether an alert is sent when the last value is not a number.
        no_improvement: For ``metric``: number of batches without a better value after which an alert is sent.
        seconds: For ``queue_wait``: length of the wait. For ``token`` and ``certificate``: time before their
            end.
        percent: For ``quota``: used share of the quota.
    """

    on: Literal[
        "experiment",
        "trial",
        "alert",
        "log_policy",
        "hang",
        "guard",
        "idle",
        "metric",
        "queue_wait",
        "quota",
        "node_lost",
        "problem",
        "token",
        "certificate",
    ]
    to: Annotated[tuple[Name, ...], Field(min_length=1)]
    states: tuple[Literal[_STATES], ...] = ("COMPLETED", "CANCELED", "ERROR")  # type: ignore[valid-type]
    above: Number | None = None
    below: Number | None = None
    nan: Flag = False
    no_improvement: Annotated[Number, Field(gt=0)] | None = None
    seconds: Annotated[Number, Field(gt=0)] | None = None
    percent: Annotated[Number, Field(gt=0, le=100)] = 90

    @classmethod
    def relations(cls, given: Mapping[str, Any]) -> Iterator[tuple[str, PydanticCustomError]]:
        """Bounds where there is something to compare with."""
        bounds = {"above", "below", "nan", "no_improvement"} & given.keys()
        if given.get("on") == "metric" and not bounds:
            yield "on", reject("one of above, below, nan and no_improvement with metric", problem="no bound")
        if given.get("on") in {"queue_wait", "token", "certificate"} and "seconds" not in given:
            yield "seconds", reject("a number of seconds", problem="missing", incomplete=True)


class AlertsDocument(Section):
    """The alerts of a workspace, or of the cluster.

    Attributes:
        endpoints: The endpoints.
        rules: The rules.
    """

    endpoints: Annotated[tuple[AnyEndpoint, ...], Field(max_length=50)] = ()
    rules: Annotated[tuple[Rule, ...], Field(max_length=100)] = ()

    @field_validator("endpoints")
    @classmethod
    def _distinct(cls, endpoints: tuple[Webhook | Chat | Mail, ...]) -> tuple[Webhook | Chat | Mail, ...]:
        twice = [name for name, count in Counter(each.name for each in endpoints).items() if count > 1]
        if twice:
            raise reject("a name of its own for each endpoint", problem=f"{twice[0]!r} is there twice")
        return endpoints

    def endpoint(self, name: str) -> Webhook | Chat | Mail | None:
        """The endpoint of a name."""
        return next((each for each in self.endpoints if each.name == name), None)

    def shown(self) -> str:
        """The document as YAML, without secrets."""
        return _dump(self, secrets=False)

    def stored(self) -> str:
        """The document as YAML, secrets included."""
        return _dump(self, secrets=True)


def read_alerts(text: str, *, earlier: AlertsDocument) -> AlertsDocument:
    """Reads a document.

    Args:
        text: YAML or JSON; empty for no alerts.
        earlier: The document that it replaces: secrets that are hidden stay.

    Raises:
        InvalidArgumentError: Something in it is wrong; the error lists every fault.
    """
    if not text.strip():
        return AlertsDocument()
    try:
        document = read_document(text)
        given = AlertsDocument.model_validate(document.content)
    except ConfigError as error:
        raise _invalid(error.faults) from error
    except ValidationError as error:
        raise _invalid(faults_of(error)) from error
    endpoints = tuple(_with_secrets(each, earlier.endpoint(each.name)) for each in given.endpoints)
    names = {each.name for each in endpoints}
    faults = [
        *document.faults,
        *(
            Fault(
                f"rules[{index}].to", f"there is no endpoint {name!r}", "names of endpoints of this document"
            )
            for index, rule in enumerate(given.rules)
            for name in rule.to
            if name not in names
        ),
        *(
            Fault(f"endpoints[{index}]", "a hidden secret that is not known", "the secret itself")
            for index, each in enumerate(endpoints)
            if HIDDEN in (getattr(each, "url", ""), getattr(each, "secret", ""))
        ),
    ]
    if faults:
        raise _invalid(faults)
    return given.model_copy(update={"endpoints": endpoints})


def _with_secrets(
    given: Webhook | Chat | Mail, earlier: Webhook | Chat | Mail | None
) -> Webhook | Chat | Mail:
    if earlier is None or given.type != earlier.type:
        return given
    hidden = [name for name in ("url", "secret") if getattr(given, name, "") == HIDDEN]
    # The signature's key goes to the server that it was given for, and to no other.
    if hidden == ["secret"] and getattr(given, "url", "") != getattr(earlier, "url", ""):
        return given
    return given.model_copy(update={name: getattr(earlier, name) for name in hidden})


def _dump(document: AlertsDocument, *, secrets: bool) -> str:
    content = document.model_dump(mode="json", exclude_defaults=True)
    for endpoint, each in zip(content.get("endpoints", ()), document.endpoints, strict=False):
        endpoint["type"] = each.type
        for name in ("url", "secret") if not secrets else ():
            # The server of a plain webhook may be known; what leads into a chat may not.
            if endpoint.get(name) and (name == "secret" or each.type != "webhook"):
                endpoint[name] = HIDDEN
    text: str = yaml.safe_dump(content, sort_keys=False, allow_unicode=True) if content else ""
    return text


def _invalid(faults: Any) -> InvalidArgumentError:
    found = list(faults)
    return InvalidArgumentError(
        "the alerts are invalid:\n" + "\n".join(f"  {fault}" for fault in found),
        violations=[Violation(fault.path, str(fault)) for fault in found],
    )
