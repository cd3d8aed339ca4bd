"""Sends spools to their services exactly once and in order.

The sender and its thread, requests made of records, the services that take them, and a pipeline that packs
the next batch while one is sent. `shipping` runs the senders of one run.
"""
