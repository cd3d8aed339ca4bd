"""Modules that scripts of older releases import beside the client itself."""
