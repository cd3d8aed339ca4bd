"""The Python SDK for people and tools, under the import path of older releases."""

from determined.experimental.client import *
