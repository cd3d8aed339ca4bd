"""Containers by Docker's API, which Podman serves too.

`client` makes calls with deadlines and bounds, `settings` are those of the engine and its pools, `request`
turns an allocation into what the API is asked for, `files` reads and writes the volume of a run, `networks`
isolates runs, `containers` creates, finds and removes the containers of a run, `runtime` builds the folder
that is mounted into images, and `engine` is the engine, which `factory` creates from its settings. No shared
disk is needed, except for the runtime and the directories that configs mount.
"""
