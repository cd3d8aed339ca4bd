"""The parts of the Core API for a process of a trial on a cluster.

They talk to the services through one `Session`, and `assembly` puts them together.
"""
