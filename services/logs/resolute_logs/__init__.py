"""The logs service: stores lines exactly once, keeps their order, filters and follows them."""
