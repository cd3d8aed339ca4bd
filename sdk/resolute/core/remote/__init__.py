"""The parts of the Core API that talk to the services of a cluster."""
