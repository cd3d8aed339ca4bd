"""The tables of metrics: rows packed into blocks of columns, streams with running aggregates, deletion."""
