"""Commands that explain decisions, compare trials, and add up costs."""
