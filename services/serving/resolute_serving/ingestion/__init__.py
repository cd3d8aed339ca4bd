"""Ingestion: the shared part of services that store batches of numbered items exactly once.

A batch belongs to a *source*, one spool file of one run of one trial, whose items are numbered from 0. The
next expected number is a column of the source's row, and is updated in the transaction that stores the items.
So a repeated batch changes nothing, and a batch that would leave a gap is refused.

The row of a deleted experiment stays, with a mark. Items that its spools still send are acknowledged and
dropped.
"""
