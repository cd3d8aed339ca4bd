"""Launches placed runs."""
