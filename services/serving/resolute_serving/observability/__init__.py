"""What operators see of a service: structured logs, gauges and counters.

And the endpoint that serves them to Prometheus.
"""
