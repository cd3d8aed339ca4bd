"""Turns arrays, pictures, tables, sounds and figures into bytes that can be logged and shown."""
