"""Refused: the package of trainers for other libraries. The error names the replacement."""

from determined._older_names import refuse

raise refuse("model_hub")
