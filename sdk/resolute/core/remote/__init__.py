"""The parts of the Core API for a process of a trial on a cluster.

They call the services through one `Session`; `assembly` creates them.
"""
