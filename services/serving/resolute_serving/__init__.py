"""The parts that every service uses: server, errors, access, database, settings, logs, peers."""
