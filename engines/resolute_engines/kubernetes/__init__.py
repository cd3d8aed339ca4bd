"""Kubernetes, by its API.

`connection` makes calls with deadlines and bounds, `pods` reads what the API server says of a Pod into
values, `pod_spec` merges what a config adds to a Pod, `objects` writes what is submitted, and `client`
submits, finds, watches and ends groups of Pods by their names. `engine` runs trials through them: `request`
makes Pods of an allocation, `states` says what became of them, `settings` has the options of the engine,
and `factory` makes it of that.
"""
