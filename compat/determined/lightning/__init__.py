"""Training with Lightning's Trainer."""
