"""What the machine of a container does while the container runs."""
