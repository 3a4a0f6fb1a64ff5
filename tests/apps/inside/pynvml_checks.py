# SPDX-License-Identifier: Apache-2.0
"""What python3-pynvml says of the first VF, as JSON. What is not supported is null."""
import json
import os
import sys

import pynvml


def ask(call, *arguments):
    try:
        answer = call(*arguments)
    except pynvml.NVMLError_NotSupported:
        return None
    return answer.decode() if isinstance(answer, bytes) else answer


pynvml.nvmlInit()
device = pynvml.nvmlDeviceGetHandleByIndex(0)
memory, second = pynvml.nvmlDeviceGetMemoryInfo(device), pynvml.nvmlDeviceGetMemoryInfo(device, version=pynvml.nvmlMemory_v2)
use = pynvml.nvmlDeviceGetUtilizationRates(device)
processes = pynvml.nvmlDeviceGetComputeRunningProcesses(device)
found = {
    "count": pynvml.nvmlDeviceGetCount(),
    "name": ask(pynvml.nvmlDeviceGetName, device),
    "uuid": ask(pynvml.nvmlDeviceGetUUID, device),
    "total": memory.total,
    "used": memory.used,
    "sum": memory.used + memory.free,
    "second_total": second.total,
    "gpu": use.gpu,
    "capability": list(pynvml.nvmlDeviceGetCudaComputeCapability(device)),
    "cuda": pynvml.nvmlSystemGetCudaDriverVersion(),
    "bus": ask(lambda: pynvml.nvmlDeviceGetPciInfo(device).busId),
    "temperature": ask(pynvml.nvmlDeviceGetTemperature, device, 0),
    "power": ask(pynvml.nvmlDeviceGetPowerUsage, device),
    "parents": [process.usedGpuMemory for process in processes if process.pid == os.getppid()],
}
pynvml.nvmlShutdown()
json.dump(found, sys.stdout)
