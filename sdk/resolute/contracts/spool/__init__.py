"""The files of a spool: their format, and how far their service has stored them."""
