"""The gRPC handlers: they parse a request, change or read this service's database, and build a response."""
