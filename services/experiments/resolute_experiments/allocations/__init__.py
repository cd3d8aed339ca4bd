"""Runs and their containers: launched at engines, watched, ended when they must, and released."""
