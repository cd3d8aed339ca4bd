"""What both ends of a gRPC connection do alike: retries, keepalive, versions, and details of errors."""
