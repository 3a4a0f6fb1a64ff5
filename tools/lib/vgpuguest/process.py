# SPDX-License-Identifier: Apache-2.0
"""Child processes that never outlive this one."""
import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent, signum):
    """In a new child: the kernel sends it `signum` when the parent thread dies."""
    _libc.prctl(_PR_SET_PDEATHSIG, signum, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def spawn(command, log=None, death_signal=signal.SIGKILL, **options):
    """Starts `command` in its own process group, with output to the file `log`; the kernel sends it `death_signal` when
    the calling thread dies, so call it from a thread that lives as long as the child shall."""
    parent = os.getpid()
    with contextlib.ExitStack() as stack:
        output = stack.enter_context(open(log, "ab")) if log else subprocess.DEVNULL
        return subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output,
                                stderr=subprocess.STDOUT, start_new_session=True,
                                preexec_fn=lambda: die_with_parent(parent, death_signal), **options)


def stop(process, grace=5.0):
    """Ends the child: SIGTERM, then SIGKILL. Returns even when the kernel cannot end it (a hung /dev/kvm)."""
    for signum, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
        if process.poll() is not None:
            return
        process.send_signal(signum)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)


@contextlib.contextmanager
def scratch_dir(prefix):
    """A new directory with a short path (Unix socket paths are limited to 107 bytes), removed at the end."""
    base = os.environ.get("TMPDIR", "/tmp")
    path = tempfile.mkdtemp(prefix=prefix, dir=base if len(base) < 40 else "/tmp")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


class Terminated(BaseException):
    def __init__(self, signum):
        super().__init__(f"signal {signum}")
        self.signum = signum


def unwind_on_signals():
    """Makes SIGTERM, SIGINT and SIGHUP run every `finally` on the way out."""
    def raise_terminated(signum, _frame):
        for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(s, signal.SIG_IGN)
        raise Terminated(signum)
    for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(s, raise_terminated)


def tail(path, lines=15):
    try:
        with open(path, errors="replace") as file:
            return "".join("  | " + line.rstrip() + "\n" for line in file.readlines()[-lines:])
    except OSError:
        return ""


def run_tool(name, main):
    """Runs main(argv) -> exit status as the whole program."""
    from .paths import ToolError
    unwind_on_signals()
    try:
        status = main(sys.argv[1:])
    except ToolError as error:
        print("\n".join([f"{name}: error: {error}", *getattr(error, "__notes__", ())]), file=sys.stderr)
        status = 1
    except Terminated as end:
        status = 128 + end.signum
    except BrokenPipeError:
        status = 128 + signal.SIGPIPE
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(status)
