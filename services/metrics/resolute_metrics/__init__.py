"""Takes reports of metrics exactly once, keeps them in columns, and answers questions without scanning."""
