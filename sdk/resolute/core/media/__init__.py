"""Encodes arrays, pictures, tables, sounds and figures as bytes that can be logged and shown."""
