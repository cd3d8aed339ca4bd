"""Trial classes in Keras: what a user writes and is given, and how it is trained."""
