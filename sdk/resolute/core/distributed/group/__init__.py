"""Process groups.

The hub that collects and passes on contributions, the client that each rank has of it, the handshake at the
start, the membership, and the state of the pending collectives. `network` connects a rank to its two
groups, the job and the machine.
"""
