#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small network: torch_training.py cuda|cpu STEPS. Says "STEP n loss" after each, one step late, so that the GPU has
the next one already. A step is much work for the GPU and little for the rest of the machine, which may be emulated."""
import sys

import torch
from torch import nn

BATCH, INPUTS, WIDTH, CLASSES = 512, 256, 768, 10


def steps(device, count):
    """The loss of each step, in the memory of the host, and what to wait for until it is there."""
    torch.manual_seed(11)
    model = nn.Sequential(nn.Linear(INPUTS, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, CLASSES)).to(device)
    data, goal = torch.randn(BATCH, INPUTS).to(device), torch.randint(0, CLASSES, (BATCH,)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _ in range(count):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(data), goal)
        loss.backward()
        optimizer.step()
        if device == "cpu":
            yield loss.detach(), lambda: None
            continue
        there = torch.empty((), pin_memory=True)
        there.copy_(loss.detach(), non_blocking=True)
        done = torch.cuda.Event(blocking=True)
        done.record()
        yield there, done.synchronize


def main(device, count):
    def say(number, loss, wait):
        wait()
        print(f"STEP {number} {loss.item():.9g}", flush=True)
    before = None
    for number, step in enumerate(steps(device, count), 1):
        if before is not None:
            say(number - 1, *before)
        before = step
    say(number, *before)


main(sys.argv[1], int(sys.argv[2]))
