"""The services as typed calls on plain values: one class a service, all on one session."""
