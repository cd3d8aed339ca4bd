"""Lightning's Trainer with the platform."""
