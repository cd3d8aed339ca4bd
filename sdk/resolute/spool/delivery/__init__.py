"""Sends spools to their services exactly once and in order.

It has the sender and its thread, requests made from records, the services that receive them, and a pipeline
that packs the next batch while one is sent. `shipping` runs the senders of one run.
"""
