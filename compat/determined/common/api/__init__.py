"""Errors of calls to a cluster."""

from determined.common.api import errors
