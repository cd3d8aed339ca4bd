"""Trials of scripts that no cluster runs (`core_v2`).

It has the context, the script's configuration, the sidecar process that sends spools and heartbeats, the copy
of the output, and the exit of the script.
"""
