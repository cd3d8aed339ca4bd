"""The Ray engine, by a driver in a process of its own, so that the services do not import Ray.

`driver` is the only module that imports Ray. It runs as a script, in any interpreter that has the Ray version
of the cluster. `client` starts it, calls it with deadlines, and restarts it. `engine` runs trials by the
driver: `states` derives the states of containers, `settings` has the options of the engine, and `factory`
creates the engine from them.
"""
