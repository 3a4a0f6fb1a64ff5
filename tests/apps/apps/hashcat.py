# SPDX-License-Identifier: Apache-2.0
"""hashcat: finds the word behind a hash."""
import functools
import hashlib

from applib.application import Application, Check, Failed

from .shared_roots import TOOLS

_WORD = "zebu"
_SECONDS = 180
# hashcat looks for NVRTC under the name that only the CUDA toolkit's development package has.
_NVRTC = "ln -sf /usr/lib/x86_64-linux-gnu/libnvrtc.so.12 /data/libnvrtc.so"


def _hashcat(place, *arguments):
    place.must(["sh", "-c", _NVRTC], timeout=10, gpu=False)
    return place.run(["hashcat", "--backend-ignore-opencl", *arguments], timeout=_SECONDS,
                     environment={"LD_LIBRARY_PATH": "/opt/vgpu:/data"})


def _devices(place):
    ran = _hashcat(place, "-I")
    if "CUDA Info" not in ran.out:
        raise Failed(f"it found no CUDA device: {ran.tail()}")
    return next((line.strip() for line in ran.out.splitlines() if "CUDA.Version" in line), "")


def _crack(place, mode, digest, *attack):
    before = place.gpu_seconds()
    ran = _hashcat(place, "-m", mode, "--potfile-disable", digest, *attack)
    if ran.code != 0 or f"{digest}:{_WORD}" not in ran.out:
        raise Failed(ran.tail())
    on_gpu = place.gpu_seconds() - before
    if on_gpu <= 0:
        raise Failed("it did not use the GPU")
    speed = next((line.strip() for line in ran.out.splitlines() if line.startswith("Speed.#1")), "")
    return f"{on_gpu:.1f} s on the GPU; {speed}"


def _dictionary(place):
    place.write("words", "".join(f"word{number}\n" for number in range(2000)).encode() + _WORD.encode() + b"\n")
    return _crack(place, 1400, hashlib.sha256(_WORD.encode()).hexdigest(), "-a", "0", "/data/words")


def checks(place):
    yield Check("devices", functools.partial(_devices, place))
    yield Check("MD5 by mask", functools.partial(_crack, place, 0, hashlib.md5(_WORD.encode()).hexdigest(), "-a", "3", "?l?l?l?l"))
    yield Check("SHA-256 by dictionary", functools.partial(_dictionary, place))


APPLICATION = Application(name="hashcat", title="hashcat", root=TOOLS, version_of="hashcat", checks=checks)
