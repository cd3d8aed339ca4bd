"""The fork that runs a script: its beginning, its end, and how its supervisor sees it."""
