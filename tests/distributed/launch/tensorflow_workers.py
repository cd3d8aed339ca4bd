"""A script of TensorFlow's kind, which needs none: workers that listen where ``TF_CONFIG`` says, and meet."""

import json
import os
import socket
import time

import determined as det

config = json.loads(os.environ.get("TF_CONFIG", '{"cluster": {"worker": ["alone:0"]}, "task": {"index": 0}}'))
workers, index = config["cluster"]["worker"], config["task"]["index"]
places = [(host, int(port)) for host, _, port in (worker.rpartition(":") for worker in workers)]


def called(host: str, port: int) -> socket.socket:
    """A connection to a worker that may be yet to come."""
    while True:
        try:
            return socket.create_connection((host, port), timeout=60)
        except ConnectionRefusedError:
            time.sleep(0.1)


# As its servers do: at every address of the machine.
with socket.create_server(("", places[index][1])) as server:
    for rank, place in enumerate(places):
        if rank != index:
            with called(*place) as peer:
                peer.sendall(bytes([index]))
    heard = []
    for _ in places[1:]:
        with server.accept()[0] as peer:
            heard.append(peer.recv(1)[0])

ranks = {"rank": index, "size": len(workers), "local_rank": 0, "local_size": 1}
ranks |= {"cross_rank": index, "cross_size": len(workers), "chief_ip": os.environ["DET_CHIEF_IP"]}
with det.core.init(distributed=det.core.DistributedContext(**ranks)) as context:
    told = context.distributed.allgather(sorted([index, *heard]))
    print(f"worker {index} of {len(workers)}: {told}", flush=True)
