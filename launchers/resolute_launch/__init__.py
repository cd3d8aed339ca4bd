"""What runs beside a trial, inside its container: the supervisor and the layers under an entrypoint."""
