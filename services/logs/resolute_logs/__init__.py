"""Takes lines of logs exactly once, keeps their order, filters and follows them."""
