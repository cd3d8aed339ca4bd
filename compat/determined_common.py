"""Refused: a package of the first releases beside ``determined``. The error names the replacement."""

from determined._older_names import refuse

raise refuse("determined_common")
