"""The code that both ends of a gRPC connection share: retries, keepalive, versions, and details of errors."""
