"""Handlers of calls about users, their tokens and their roles."""
