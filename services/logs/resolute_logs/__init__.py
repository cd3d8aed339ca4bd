"""The logs service: stores lines exactly once and in order, filters them and follows them."""
