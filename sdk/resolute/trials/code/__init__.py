"""A trial's own code: its class, imported from the model definition, and the copy kept with checkpoints."""
