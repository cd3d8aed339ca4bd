"""What trials report, as typed calls: log lines, metrics and media."""
