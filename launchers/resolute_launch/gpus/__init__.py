"""What the GPUs of a run did while it lasted: `meter` adds up what `counters` reads."""
