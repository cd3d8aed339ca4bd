"""A logger for Lightning's Trainer."""

from resolute.lightning.unmanaged_logger import DetLogger
