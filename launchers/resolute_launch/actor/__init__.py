"""The shim of a supervisor beside a Ray actor, controlled by pipes."""
