"""Refused: the package that the first releases had beside ``determined``, with what to use instead."""

from determined._older_names import refuse

raise refuse("determined_deploy")
