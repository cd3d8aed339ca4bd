"""Sessions of browsers: a one-time code becomes a cookie, which stands for a token."""
