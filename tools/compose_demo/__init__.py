"""Runs the search of `make demo` on deploy/compose.yaml, under Podman and without a registry of images."""
