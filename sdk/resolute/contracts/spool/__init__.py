"""The files of a spool: their format, and the acknowledged position."""
