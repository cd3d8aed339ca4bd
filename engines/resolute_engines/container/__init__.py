"""Containers by Docker's API, which Podman serves too.

`client` makes calls with deadlines and bounds, `settings` are those of the engine and its pools, `request`
turns an allocation into what the API is asked for, `files` reads and writes the volume of a run, `networks`
keeps runs apart, `containers` makes, finds and removes what a run has in the engine, `runtime` makes what is
mounted into images, and `engine` is the engine, which `factory` makes of its settings. Nothing here needs a
disk that both sides see, but for the runtime and the directories that configs mount.
"""
