"""Builds the container images of deploy/images, reproducibly and without a registry."""
