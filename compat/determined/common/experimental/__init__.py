"""The Python SDK for people and tools, as older releases imported it."""

from determined.experimental.client import *
