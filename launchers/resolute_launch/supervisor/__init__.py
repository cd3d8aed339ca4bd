"""The process beside a trial, run as `python -m resolute_launch.supervisor RUN_DIR`.

It executes one run from its launch spec to its exit record. Here are the rendezvous and the start barrier
of its containers, the renewal of the lease, the policy that decides when processes are terminated, the
summary of how the run ended, and the upload of what a lost supervisor left behind.
"""
