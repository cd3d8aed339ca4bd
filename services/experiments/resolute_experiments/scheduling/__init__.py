"""Assignment of slots to trials.

`policy` and `placement` are pure rules, which `scheduler` applies to the queue. `jobs` shows and changes the
queue. `wait_reasons` stores why trials wait. `disabling` takes slots out of use. `draining` empties the
cluster before a planned stop.
"""
