"""Trial classes in Keras: the user's class, its context, and the training loop."""
