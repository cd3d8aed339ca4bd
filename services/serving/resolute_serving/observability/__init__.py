"""Observability of a service for operators.

It has structured logs, gauges and counters, and the endpoint that serves them to Prometheus.
"""
