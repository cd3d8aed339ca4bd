"""The container engine, by Docker's API, which Podman serves too.

`client` makes calls with deadlines and bounds. `settings` has the settings of the engine and its pools.
`request` turns an allocation into requests to the API. `files` reads and writes the volume of a run.
`networks` isolates runs. `containers` creates, lists and removes the containers of a run. `runtime` builds
the folder that is mounted into images. `engine` is the engine, which `factory` creates from its settings. No
shared disk is needed, except for the runtime and the directories that configs mount.
"""
