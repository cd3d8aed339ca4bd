"""The Kubernetes engine, by Kubernetes' API.

`connection` makes calls with deadlines and bounds. `pods` parses the API server's data about a Pod.
`pod_spec` merges a config's additions to a Pod. `objects` builds the submitted objects. `client` submits,
lists, watches and ends groups of Pods by name. `engine` runs trials as Pods: `request` builds the Pods of an
allocation, `states` derives the states of its containers, `settings` has the options of the engine, and
`factory` creates the engine from them.
"""
