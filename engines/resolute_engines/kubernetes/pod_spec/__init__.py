"""What a config adds to a Pod by ``environment.pod_spec``.

`merge` checks its form and merges it, `access` refuses what a pool does not let configs have, and `fields`
lists what every pool does.
"""
