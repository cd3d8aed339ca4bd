"""What every service is built from: server, errors, access, database, settings, logs, peers."""
