"""Findings of the checks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Status(Enum):
    """The status of a checked object."""

    OK = "ok"
    """As it should be."""
    WARNING = "warning"
    """It works, and may not for long."""
    FAULT = "fault"
    """It keeps the cluster from working."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """The result of one check."""

    subject: str
    """What."""
    status: Status
    """How it is."""
    detail: str
    """What was seen."""
    remedy: str = ""
    """What to do about it; empty when there is nothing to do."""


def good(subject: str, detail: str) -> Finding:
    """A thing as it should be."""
    return Finding(subject=subject, status=Status.OK, detail=detail)


def warning(subject: str, detail: str, *, remedy: str) -> Finding:
    """A thing that works, and may not for long."""
    return Finding(subject=subject, status=Status.WARNING, detail=detail, remedy=remedy)


def fault(subject: str, detail: str, *, remedy: str) -> Finding:
    """A thing that keeps the cluster from working."""
    return Finding(subject=subject, status=Status.FAULT, detail=detail, remedy=remedy)
