"""What `det` prints: JSON, CSV and lists with the keys, columns and spellings of Determined."""
