"""Alerts: rules that say which events notify whom, and deliveries to webhooks, chats and mailboxes.

An alert is written with what caused it, as a delivery for each endpoint, and sent until it is taken.
"""
