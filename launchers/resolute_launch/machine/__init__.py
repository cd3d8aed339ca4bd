"""Measures the machine of a container while the container runs, and asks whether it will be taken away."""
