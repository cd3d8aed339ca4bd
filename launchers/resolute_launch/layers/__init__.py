"""Launch layers, which start the workers of an entrypoint in every container of a run.

torch.distributed, Horovod, DeepSpeed, TensorFlow. Each is a pure function from its arguments and the
topology of the run to a launch plan; they share the command line, the plan and the runner that executes it.
"""
