"""The machines.

`protocol` is what every resource manager implements (local today; container, Slurm, Kubernetes and Ray
engines are added as subpackages beside `local`). The fleet keeps the database's view of containers true to
what the manager sees, and leases tell which of them are alive.
"""
