"""Process groups.

It has the hub that collects and distributes contributions, each rank's client of the hub, the handshake at
the start, the membership, and the state of the pending collectives. `network` connects a rank to its two
groups: the job and the machine.
"""
