"""Stage 4: several processes work on one trial.

What is new since stage 3: a launcher that starts one worker for each slot, and care about who does what.
Workers agree through `core_context.distributed`; only the chief (rank 0) reports, saves and completes
operations.

`python3 4_distributed.py` is the launcher, `python3 4_distributed.py RANK LOCAL_RANK` is a worker.
"""

import json
import logging
import subprocess
import sys
import time

import determined as det

log = logging.getLogger("core_api")


def save_state(core_context, trial_id, steps_completed, x):
    metadata = {"steps_completed": steps_completed}
    with core_context.checkpoint.store_path(metadata) as (directory, _storage_id):
        state = {"trial_id": trial_id, "steps_completed": steps_completed, "x": x}
        directory.joinpath("state.json").write_text(json.dumps(state))


def load_state(core_context, trial_id, checkpoint):
    # Every rank reads; ranks on one machine share one download.
    with core_context.checkpoint.restore_path(checkpoint) as directory:
        state = json.loads(directory.joinpath("state.json").read_text())
    if state["trial_id"] == trial_id:
        return state["x"], state["steps_completed"]
    return state["x"], 0


def main(core_context, trial_id, latest_checkpoint, increment_by):
    distributed = core_context.distributed
    is_chief = distributed.rank == 0
    log.info("rank %d of %d is there", distributed.rank, distributed.size)  # NEW: marked with its rank
    x = 0
    steps_completed = 0
    if latest_checkpoint is not None:
        x, steps_completed = load_state(core_context, trial_id, latest_checkpoint)
    last_saved = steps_completed

    # Every rank iterates; all get the same operations.
    for op in core_context.searcher.operations():
        while steps_completed < op.length:
            # NEW: each rank contributes its own part, as gradients would be summed.
            all_increments = distributed.allgather(increment_by + distributed.rank)
            x += sum(all_increments)
            time.sleep(0.02)
            steps_completed += 1
            if steps_completed % 10 == 0:
                if is_chief:  # NEW: the same line from every rank would only be noise
                    log.info("after %d steps x is %d", steps_completed, x)
                    core_context.train.report_training_metrics(
                        steps_completed=steps_completed, metrics={"x": x}
                    )
                    op.report_progress(steps_completed)
                    save_state(core_context, trial_id, steps_completed, x)
                last_saved = steps_completed
                # Every rank asks, at the same step, and every rank gets the same answer.
                if core_context.preempt.should_preempt():
                    return

        if is_chief:  # NEW
            core_context.train.report_validation_metrics(steps_completed=steps_completed, metrics={"x": x})
            op.report_completed(x)

    if is_chief and last_saved != steps_completed:  # NEW
        save_state(core_context, trial_id, steps_completed, x)


# NEW: what runs in each worker.
def worker_main(info, rank, local_rank):
    slots_per_node = len(info.slot_ids)
    nodes = len(info.container_addrs)
    distributed = det.core.DistributedContext(
        rank=rank,
        size=slots_per_node * nodes,
        local_rank=local_rank,
        local_size=slots_per_node,
        cross_rank=info.container_rank,
        cross_size=nodes,
        chief_ip=info.container_addrs[0],
    )
    with det.core.init(distributed=distributed) as core_context:
        main(core_context, info.trial.trial_id, info.latest_checkpoint, info.trial.hparams["increment_by"])


# NEW: what the entrypoint runs, once on each machine. This is all it takes to write a launcher of your own.
def launcher_main(info):
    slots_per_node = len(info.slot_ids)
    workers = []
    for local_rank in range(slots_per_node):
        rank = info.container_rank * slots_per_node + local_rank
        worker = [sys.executable, __file__, str(rank), str(local_rank)]
        # wrap_rank marks every line of output with the rank, so that logs can be filtered by it.
        command = [sys.executable, "-m", "determined.launch.wrap_rank", str(rank), *worker]
        workers.append(subprocess.Popen(command))
    return wait_for_all(workers)


def wait_for_all(workers):
    """Returns 0 if all workers succeed. If one fails, the others would wait for it, so they are ended."""
    running = list(workers)
    while running:
        for worker in running:
            if worker.poll():
                for other in running:
                    other.terminate()
                for other in running:
                    other.wait()
                return 1
        running = [worker for worker in running if worker.poll() is None]
        time.sleep(0.05)
    return 0


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format=det.LOG_FORMAT)
    cluster_info = det.get_cluster_info()
    if cluster_info is None:
        sys.exit("the cluster says how many workers there are; run: det e create 4_distributed.yaml . -f")
    if len(sys.argv) == 3:
        worker_main(cluster_info, rank=int(sys.argv[1]), local_rank=int(sys.argv[2]))
    else:
        sys.exit(launcher_main(cluster_info))
