"""Launch layers, which start the workers of an entrypoint in every container of a run.

There are layers for torch.distributed, Horovod, DeepSpeed and TensorFlow. Each is a pure function from its
arguments and the topology of the run to a launch plan. They share the command line, the plan and the runner
that executes it.
"""
