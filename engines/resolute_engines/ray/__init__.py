"""Ray, by a driver: a process of its own, so that the services import nothing of Ray.

`driver` is the only module that imports it, and runs as a script, by any interpreter that has the Ray of the
cluster; `client` starts it, asks it with deadlines, and starts it again. `engine` runs trials through them:
`states` says what became of them, `settings` has the options of the engine, and `factory` makes it of
that.
"""
