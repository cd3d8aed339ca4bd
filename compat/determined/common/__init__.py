"""Modules that clients of older releases import besides the client itself."""
