"""A few lines of C in the place of NVIDIA's management library: one GPU that is not there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from support.backends import missing, need_module

DEVICE = "GPU-11111111-2222-3333-4444-555555555555"
_LIBRARY = r"""
/* A GPU that takes a joule at each reading, works 25 % of the time, is hot and throttled; had 2 errors.
   Its links have sent a MiB more at each reading; of its six processes one works 20 % of the time. */
#include <string.h>
static const char *uuid_of_gpu = "GPU-11111111-2222-3333-4444-555555555555";
static unsigned long long millijoules = 5000;
static int gpu;
int nvmlInit_v2(void) { return 0; }
int nvmlInitWithFlags(unsigned int flags) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int code) { return "not found"; }
int nvmlDeviceGetCount_v2(unsigned int *count) { *count = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **handle) {
    if (index) return 2;
    *handle = &gpu;
    return 0;
}
int nvmlDeviceGetHandleByUUID(const char *uuid, void **handle) {
    if (strcmp(uuid, uuid_of_gpu)) return 6;
    *handle = &gpu;
    return 0;
}
int nvmlDeviceGetUUID(void *handle, char *uuid, unsigned int length) {
    strncpy(uuid, uuid_of_gpu, length);
    return 0;
}
int nvmlDeviceGetTotalEnergyConsumption(void *handle, unsigned long long *energy) {
    *energy = millijoules;
    millijoules += 1000;
    return 0;
}
int nvmlDeviceGetUtilizationRates(void *handle, unsigned int *rates) {
    rates[0] = 25;
    rates[1] = 0;
    return 0;
}
int nvmlDeviceGetPowerUsage(void *handle, unsigned int *milliwatts) { *milliwatts = 350500; return 0; }
int nvmlDeviceGetTemperature(void *handle, int sensor, unsigned int *celsius) { *celsius = 88; return 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *handle, unsigned long long *reasons) {
    static int asked;
    /* hot and idle; then idle, as set, in step with other GPUs, and for a display */
    *reasons = asked++ ? 0x1 | 0x2 | 0x10 | 0x100 : 0x40 | 0x1;
    return 0;
}
int nvmlDeviceGetTotalEccErrors(void *handle, int kind, int counter, unsigned long long *errors) {
    *errors = kind == 1 && counter == 0 ? 2 : 99;
    return 0;
}
int nvmlDeviceGetPcieThroughput(void *handle, int counter, unsigned int *kilobytes) {
    *kilobytes = counter ? 3000 : 2000;
    return 0;
}
struct field { unsigned int id, scope; long long at, took; int type, code; unsigned long long value; };
int nvmlDeviceGetFieldValues(void *handle, int count, struct field *fields) {
    static unsigned long long sent;
    sent += 1024;
    for (int at = 0; at < count; at++) {
        fields[at].code = fields[at].scope == 0xFFFFFFFF && fields[at].id == 138 ? 0 : 3;
        fields[at].value = sent;
    }
    return 0;
}
struct process { unsigned int pid; unsigned long long bytes; unsigned int instance, part; };
int nvmlDeviceGetComputeRunningProcesses_v3(void *handle, unsigned int *count, struct process *processes) {
    unsigned int room = *count;
    *count = 6;
    if (room < 6) return 7;
    for (unsigned int at = 0; at < 6; at++) {
        processes[at].pid = 100 + at;
        processes[at].bytes = 1000 * at;
    }
    return 0;
}
struct sample { unsigned int pid; unsigned long long at; unsigned int work, memory, encoder, decoder; };
int nvmlDeviceGetProcessUtilization(void *handle, struct sample *samples, unsigned int *count,
                                    unsigned long long since) {
    if (since >= 2000) return 6;
    if (*count < 2) { *count = 2; return 7; }
    for (unsigned int at = 0; at < 2; at++) {
        samples[at].pid = 105;
        samples[at].at = 1000 * (at + 1);
        samples[at].work = 10 + 20 * at;
    }
    return 0;
}
"""


def plant(folder: Path) -> Path:
    """Builds the library in a folder, which ``LD_LIBRARY_PATH`` is to name, and returns that."""
    need_module("pynvml")
    compiler = shutil.which("cc")
    if compiler is None:
        missing("there is no C compiler: `make backends` installs one")
    (folder / "nvml.c").write_text(_LIBRARY)
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", "libnvidia-ml.so.1", "nvml.c"],
        cwd=folder,
        check=True,
        timeout=120,
    )
    return folder
