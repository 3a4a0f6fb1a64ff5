#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program with more rights than its caller (set-user-ID) does not ask the channel socket that the caller names.
usage: secure_test.py PROGRAM LIBCUDA LIBNVIDIA_ML"""
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile

import harness

CALLER, OWNER = 65534, 65533


def asked(listener, argv, path):
    """Does the program, run by CALLER, connect to the socket? And what it prints."""
    connected = False
    with subprocess.Popen(argv, env={"VGPU_CHANNEL": path}, user=CALLER, group=CALLER, extra_groups=[], cwd="/", stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as program:
        while program.poll() is None:
            if select.select([listener], [], [], 0.1)[0]:
                listener.accept()[0].close()
                connected = True
        text = program.stdout.read()
    return connected or bool(select.select([listener], [], [], 0)[0]), text


def test():
    if os.geteuid() != 0:
        harness.skip("only root makes programs with more rights than their caller")
    with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        if os.statvfs(directory).f_flag & os.ST_NOSUID:
            harness.skip(f"{directory} is mounted nosuid")
        os.chmod(directory, 0o755)
        program, *libraries = (shutil.copy(file, directory) for file in sys.argv[1:])
        path = os.path.join(directory, "vf.sock")
        listener.bind(path)
        os.chmod(path, 0o666)
        listener.listen(8)
        for library, call in zip(libraries, ("cuInit", "nvmlInit_v2")):
            os.chmod(library, 0o755)
            for owner, mode, expected in ((0, 0o755, True), (OWNER, 0o4755, False)):
                os.chown(program, owner, owner)
                os.chmod(program, mode)
                did, text = asked(listener, [program, library, call], path)
                harness.check(f"{call}: " in text, f"{call} is called: {text}")
                harness.check(did == expected, f"a program of mode {mode:o} {'asks' if expected else 'does not ask'} the caller's socket: {text}")


harness.main(test, needs_guest=False)
