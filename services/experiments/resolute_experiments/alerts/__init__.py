"""Alerts: rules that send events to endpoints, and deliveries to webhooks, chats and mailboxes.

An alert is written in the transaction of its cause, as a delivery for each endpoint. A delivery is sent until
the endpoint accepts it.
"""
