"""Sign-in by an OpenID provider: its ID tokens, its keys, and the users of the people that it knows."""
