"""What several engines need: attempts, named tasks, watching, late kills, releases and run directories."""
