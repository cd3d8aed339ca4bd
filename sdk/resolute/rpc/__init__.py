"""The only place of the SDK that knows gRPC."""
