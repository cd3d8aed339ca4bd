"""What operators see of a service.

Structured logs, gauges and counters, and the endpoint that serves them to Prometheus.
"""
