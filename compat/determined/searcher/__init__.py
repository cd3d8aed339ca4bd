"""Custom search methods."""

from resolute.searcher import *
