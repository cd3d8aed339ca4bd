"""The process beside a trial, run as `python -m resolute_launch.supervisor RUN_DIR`.

It executes one run from its launch spec to its exit record. The package has the rendezvous and the start
barrier of the run's containers, the renewal of the lease, the policy that decides when processes are
terminated, the exit summary, and the upload of a lost supervisor's data.
"""
