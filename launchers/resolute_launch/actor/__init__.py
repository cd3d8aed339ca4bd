"""The shim of a supervisor beside an actor of Ray, controlled by pipes."""
