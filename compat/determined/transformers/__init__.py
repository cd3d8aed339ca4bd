"""Hugging Face's Trainer on the platform: ``resolute.transformers``."""

from resolute.transformers import ResoluteCallback as DetCallback
