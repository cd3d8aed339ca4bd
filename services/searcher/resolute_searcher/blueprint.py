"""Creates the searcher service."""

from __future__ import annotations

from resolute_searcher.service import NAME, SearcherService
from resolute_serving.server.service import Blueprint

BLUEPRINT = Blueprint(name=NAME, package="resolute_searcher", create=SearcherService)
"""The searcher service."""
