"""HTTP in front of the services: every call by the Connect protocol and gRPC-web, and one gRPC address."""
