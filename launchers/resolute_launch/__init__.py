"""The code that runs beside a trial in its container: the supervisor and the launch layers."""
