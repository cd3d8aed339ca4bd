"""The cause of a run's failure, derived from its last lines: a sentence with the cause and the remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

_BATCHES = "use smaller batches, gradient accumulation or activation checkpointing"
_NODE = (
    "this points at node {node}, not at the script: run it again, and if it comes again there, have the node "
    "looked at"
)
_BLOCKING = "set CUDA_LAUNCH_BLOCKING=1 in environment.environment_variables"
_STACK = "set PYTHONFAULTHANDLER=1 in environment.environment_variables to see in which call"
_ROOM = (
    "free space on it (`resolute doctor` there shows the disks), or let checkpoint_storage.save_trial_latest "
    "and save_trial_best keep fewer checkpoints"
)
_SIGN_IN = "store a valid token of it by `resolute secret set` and name it in environment.secrets"


@dataclass(frozen=True, slots=True)
class Cause:
    """One kind of failure."""

    pattern: re.Pattern[str]
    """Searched in the output, from the last line backwards. Its groups are what the sentence names."""
    sentence: str
    """The cause and what to do; names in braces are groups, and ``node``."""


def _cause(pattern: str, sentence: str) -> Cause:
    return Cause(re.compile(pattern, re.IGNORECASE), sentence)


CAUSES = (
    _cause(
        r"\\r'?: \[Errno 2\]|\$'\\r': command not found|/usr/bin/env: .*\\r",
        "a script has the line ends of Windows, \\r\\n; `sed -i 's/\\r$//' FILE` mends them, then submit it "
        "again",
    ),
    _cause(
        r"CUDA out of memory\. Tried to allocate (?P<wanted>[\d.]+ \w+)\. GPU (?P<gpu>\d+) has a "
        r"total capacity of "
        r"(?P<total>[\d.]+ \w+) of which (?P<free>[\d.]+ \w+) is free",
        "GPU {gpu} ran out of memory: {wanted} more were wanted and {free} of {total} were free; "
        f"{_BATCHES}",
    ),
    _cause(
        r"(?:CUDA|HIP|XPU|MPS backend) out of memory|CUDA_ERROR_OUT_OF_MEMORY|CUBLAS_STATUS_ALLOC_FAILED"
        r"|RESOURCE_EXHAUSTED: Out of memory",
        f"a GPU ran out of memory; {_BATCHES}",
    ),
    _cause(
        r"uncorrectable ECC error",
        f"the memory of a GPU has an error that cannot be corrected (ECC); {_NODE}",
    ),
    _cause(
        r"NVRM: Xid \([^)]*\): (?P<xid>\d+)",
        f"the driver reported Xid {{xid}} of a GPU; {_NODE}",
    ),
    _cause(
        r"GPU (?:has fallen off the bus|is lost)|CUDA error: (?:unknown error|hardware stack "
        r"error)|device lost",
        f"a GPU or its driver failed; {_NODE}",
    ),
    _cause(
        r"ncclRemoteError|remote process exited or there was a network error",
        "another rank ended, or its node lost the network, while NCCL talked to it: correct what the rank "
        "that failed first says in the log; if none failed, run it again, and have the network of the "
        "nodes checked if the failure returns",
    ),
    _cause(
        r"Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=\d+, OpType=(?P<operation>\w+)",
        "a collective of NCCL ({operation}) was not joined by all ranks in time; the log says which rank "
        "the others waited for and where: correct what it does there, or raise the timeout of "
        "init_process_group if it is only slow",
    ),
    _cause(
        r"ncclSystemError|ncclUnhandledCudaError|ncclInternalError|NCCL WARN",
        f"NCCL failed in the driver or the network of this rank; {_NODE}",
    ),
    _cause(
        r"device-side assert triggered",
        "a kernel got values out of range, most often an index such as a class or a token beyond the size "
        f"of its layer; {_BLOCKING} to see where, and correct the values or the layer there",
    ),
    _cause(
        r"CUDA error: an illegal memory access",
        f"a kernel read memory that is not its own: a defect of an extension or of a library; {_BLOCKING} "
        "to see in which call, then reinstall that library or take another version",
    ),
    _cause(
        r"CUDA driver version is insufficient|driver on your system is too old",
        "the driver of node {node} is older than the CUDA of the image; take an image of an older CUDA, or "
        "update the driver",
    ),
    _cause(
        r"no kernel image is available for execution",
        "the image's libraries were not built for the GPUs of node {node}; take an image that supports them",
    ),
    _cause(
        r"Torch not compiled with CUDA enabled",
        "the torch of the image has no CUDA; install one that has, or train on CPUs",
    ),
    _cause(
        r"no CUDA-capable device|No CUDA GPUs are available",
        "no GPU is visible to the script; ask for them by resources.slots_per_trial and "
        "resources.resource_pool, and leave CUDA_VISIBLE_DEVICES alone",
    ),
    _cause(
        r"DataLoader worker \(pid.*\) is killed by signal: Bus error|insufficient shared memory",
        "the shared memory of the container (/dev/shm) is full; raise resources.shm_size, or use fewer "
        "workers of data loaders",
    ),
    _cause(
        r"DataLoader worker \(pid.*\) (?:is killed by signal: Killed|exited unexpectedly)",
        "a worker of a data loader was killed, most often because the main memory (RAM) was used up: use "
        "fewer workers (num_workers) or smaller batches, or a node with more memory",
    ),
    _cause(
        r"can't allocate memory: you tried to allocate (?P<wanted>\d+) bytes",
        "an allocation of {wanted} bytes of main memory (RAM, not of a GPU) failed on node {node}; use "
        "smaller batches or fewer workers of data loaders, or a node with more; a size far beyond your "
        "data is most often a wrong shape",
    ),
    _cause(
        r"^MemoryError\b|Cannot allocate memory|std::bad_alloc",
        "the main memory (RAM, not that of a GPU) of node {node} was used up; use smaller batches or fewer "
        "workers of data loaders, or a node with more",
    ),
    _cause(
        r"No space left on device: '(?P<file>[^']+)'",
        f"the disk of node {{node}} that {{file}} would be on is full; {_ROOM}",
    ),
    _cause(
        r"No space left on device",
        f"the disk of node {{node}} to which the last line of the traceback writes is full; {_ROOM}",
    ),
    _cause(
        r"PytorchStreamWriter failed writing|unexpected pos \d+ vs \d+",
        "torch could not write a file whole, most often because the disk of node {node} that the traceback "
        f"names is full; {_ROOM}",
    ),
    _cause(
        r"Disk quota exceeded",
        "the quota of the directory that the last line of the traceback writes to is used up; delete files "
        "there, or ask its administrator for more",
    ),
    _cause(
        r"Too many open files",
        "the limit of open files is reached; close files, use fewer workers, or call "
        "torch.multiprocessing.set_sharing_strategy('file_system')",
    ),
    _cause(
        r"Stale file handle",
        "a network file system of node {node} lost a file that was open; run it again, and if it comes "
        "again have an administrator mount that file system anew",
    ),
    _cause(
        r"Input/output error",
        "a disk of node {node} failed to read or write; run it again, and if it comes again there have an "
        "administrator replace the disk",
    ),
    _cause(
        r"Address already in use",
        "a port is taken on node {node}, most often by processes of an earlier run; a restart of the trial "
        "takes another port by itself: otherwise submit it again",
    ),
    _cause(
        r"Connection closed by peer|Connection reset by peer",
        "the other end of a connection went away: if a rank failed before, its lines in the log say what "
        "to correct; if none did, it was the server that the traceback names: try again when that is back",
    ),
    _cause(
        r"Temporary failure in name resolution|Name or service not known|getaddrinfo failed",
        "a host name could not be looked up from node {node}; the traceback has the name: correct it, or "
        "the network of the node, or put the data where no network is needed",
    ),
    _cause(
        r"\b40[13] Client Error.*https?://(?P<server>[^/\s]+)",
        f"the server {{server}} refused access; {_SIGN_IN}",
    ),
    _cause(
        r"\b40[13] (?:Client Error|Forbidden|Unauthorized)|GatedRepoError|Access denied",
        f"the server that the traceback names refused access; {_SIGN_IN}",
    ),
    _cause(
        r"Connection refused|timed out|TimeoutError",
        "the server or rank whose address the traceback has did not answer node {node}; check that it "
        "runs, and that the node can reach it",
    ),
    _cause(
        r"No module named '?(?P<module>resolute|determined)\b(?!\.)",
        "the Python of the entrypoint has no module {module}; begin the entrypoint with python3, which is "
        "the one that Resolute is installed in, or install Resolute into the image",
    ),
    _cause(
        r"No module named '?(?P<module>[\w.]+)",
        "Python has no module {module}; submit its directory with -i, or install it: into the environment "
        "of the cluster, by startup-hook.sh or into the image",
    ),
    _cause(
        r"cannot import name '(?P<name>\w+)' from '(?P<module>(?P<package>\w+)[\w.]*)'",
        "the module {module} of this environment has no {name}: correct the name, or have startup-hook.sh "
        "or the image install the version of {package} that the script was written for",
    ),
    _cause(
        r"can't open file '?(?P<file>[^':]+)",
        "the script {file} was not submitted, or the entrypoint names it wrongly; paths begin in the "
        "submitted directory",
    ),
    _cause(
        r"(?:^|: )(?P<script>[\w./-]+\.(?:py|sh)): (?:(?:command )?not found|Permission denied)$",
        "{script} cannot be started as a command; begin the entrypoint with the program that runs it, such "
        "as `python3 SCRIPT`",
    ),
    _cause(
        r"(?:^|: )(?P<command>[\w./-]+): (?:command )?not found",
        "there is no command {command}; correct the entrypoint, or install it by startup-hook.sh or the "
        "image",
    ),
    _cause(
        r"error: unrecognized arguments: (?P<arguments>.+)",
        "the script does not know the arguments {arguments}; correct the entrypoint",
    ),
    _cause(
        r"^(?:\w*SyntaxError|IndentationError|TabError): (?P<why>.+)",
        "the code cannot be read ({why}); correct it in the file and line that the traceback names, and "
        "submit it again",
    ),
    _cause(
        r"FileNotFoundError: .*: '(?P<file>[^']+)'",
        "there is no file {file} on node {node}; mount its directory by bind_mounts, or submit it",
    ),
    _cause(
        r"PermissionError: .*: '(?P<file>[^']+)'",
        "the run's user may not use {file}; change its permissions, or run as another user",
    ),
    _cause(
        r"Error\(s\) in loading state_dict for (?P<model>\w+)",
        "the checkpoint was written by another model than {model} now is; give both the same "
        "hyperparameters, or begin without it",
    ),
    _cause(
        r"shapes cannot be multiplied|size of tensor|mismatch in shape|expected input.* to have \d+ channels",
        "two tensors do not fit each other in the line that the traceback names; correct the size of the "
        "layer there, or the hyperparameter that sets it",
    ),
    _cause(
        r"DATA_LOSS|checksum mismatch|PytorchStreamReader failed|unexpected EOF",
        "the file that the traceback names is damaged or incomplete; if it is of a checkpoint, go on from "
        "an earlier one; if it is data, write it again",
    ),
)
"""Kinds of failures; the first that is found counts."""
_BY_SIGNAL: Mapping[int, str] = {
    132: (
        "a compiled library uses instructions that the processor of node {node} does not have (SIGILL); "
        f"{_STACK}, then install a build of that library for this processor, or train on other nodes"
    ),
    134: (
        "a compiled library found an error and ended the process (SIGABRT); the lines before this one have "
        f"its message: correct what it names. If there is none, {_STACK}, then reinstall or pin that library"
    ),
    135: (
        "a mapped file or shared memory could not be read (SIGBUS): /dev/shm or a disk of node {node} is "
        "full; raise resources.shm_size, or free space on the disk that `resolute doctor` shows there"
    ),
    136: (
        f"a compiled library divided by zero, or computed what its processor refuses (SIGFPE); {_STACK}, "
        "and correct the sizes or values that it is given there"
    ),
    139: (
        "a compiled library read memory that is not its own (SIGSEGV), by a defect or beside another "
        f"version than it was built for; {_STACK}, then reinstall or pin that library"
    ),
}
"""By the exit code of what a signal ended."""


_ENDED_BY_OTHERS = frozenset({137, 143})
"""Exit codes of SIGKILL and SIGTERM: the output before them does not explain them."""
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt)\b")
_MOST_LINES = 15


def cause_of(exit_code: int, text: str, *, node: str, xid: str = "") -> str:
    """Says what made a run fail and what to do.

    Args:
        exit_code: Exit code of the rank that failed first.
        text: Its last lines.
        node: Name of its machine.
        xid: What the kernel's log says of an error of a GPU shortly before; empty for nothing. It counts only
            where the output names no cause.

    Returns:
        A sentence; empty for what is the script's own affair, which its last line says best.
    """
    if exit_code in _ENDED_BY_OTHERS:
        return ""
    for line in (*_last_words(text), xid):
        for cause in CAUSES:
            if match := cause.pattern.search(line):
                return cause.sentence.format(node=node or "this one", **match.groupdict())
    return _BY_SIGNAL.get(exit_code, "").format(node=node or "this one")


def _last_words(text: str) -> list[str]:
    """The last lines, backwards to that of the last exception: what came before it was no reason to end."""
    words: list[str] = []
    for line in reversed(text.splitlines()[-_MOST_LINES:]):
        words.append(line.strip())
        if _EXCEPTION.match(words[-1]):
            break
    return words
