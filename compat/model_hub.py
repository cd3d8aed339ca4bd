"""Refused: the package of trainers for other libraries, with what to use instead."""

from determined._older_names import refuse

raise refuse("model_hub")
