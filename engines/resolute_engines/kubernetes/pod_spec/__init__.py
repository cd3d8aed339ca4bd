"""A config's additions to a Pod by ``environment.pod_spec``.

`merge` checks their form and merges them. `access` refuses fields that a pool does not allow. `fields` lists
the fields that every pool allows.
"""
