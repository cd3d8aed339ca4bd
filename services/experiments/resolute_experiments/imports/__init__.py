"""Imports experiments that other clusters ran, with their original data."""
