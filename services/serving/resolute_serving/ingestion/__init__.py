"""What the services of metrics and logs have in common: they take batches of numbered items exactly once.

A batch belongs to a *source*, one spool file of one run of one trial, and its items are numbered from 0 in
it. The next number that a source owes is a column of its row, and it moves in the transaction that stores the
items: a batch that comes again changes nothing, and one that would leave a hole is refused.

A deleted experiment leaves its row behind, marked. What its spools still send is acknowledged and dropped.
"""
