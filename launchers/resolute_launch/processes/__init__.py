"""Starting, signalling and ending processes: child processes in sessions of their own.

The shutdown sequence SIGTERM then SIGKILL, grace periods, and the handlers of this process's own signals.
"""
