"""Sign-in by an OpenID provider: its ID tokens, its keys, and its users."""
