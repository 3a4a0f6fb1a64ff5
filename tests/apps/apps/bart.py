# SPDX-License-Identifier: Apache-2.0
"""BART: magnetic resonance images from a phantom, on the GPU and on the CPU."""
import functools

from applib.application import Application, Check, Failed, Skipped

from .shared_roots import SID

_SECONDS = 120
_MOST = 1e-4
_RADIAL = "bart traj -r -x 32 -y 24 t && bart phantom -k -t t k"
_RECONSTRUCTIONS = {  # check: (what makes the input, the program with {gpu} where its option goes)
    # More steps without regularization tell nothing: after 50 of them the CPU's own image changes by 8 % when its input does by 0.004 %.
    "nufft": (_RADIAL, "bart nufft {gpu} -i -m 5 t k {out}"),
    "pics": ("bart phantom -x 32 -k -s 2 k && bart ones 4 32 32 1 2 s0 && bart scale 0.7 s0 s", "bart pics {gpu} -S -i 5 -l2 -r 0.01 k s {out}"),
    "ecalib": ("bart phantom -x 32 -k -s 2 k", "bart ecalib {gpu} -m 1 -r 16 k {out}"),
}


def _reconstruct(place, prepare, command):
    place.must(["sh", "-ec", f"rm -f *.cfl *.hdr; {prepare}"], timeout=_SECONDS, gpu=False)
    place.must(["sh", "-ec", command.format(gpu="", out="cpu")], timeout=_SECONDS, gpu=False)
    before = place.gpu_seconds()
    ran = place.run(["sh", "-ec", command.format(gpu="-g", out="gpu")], timeout=_SECONDS)
    if "unrecognized option" in ran.err or "compiled without GPU" in ran.err:
        raise Skipped(ran.tail())
    if ran.code != 0:
        raise Failed(ran.tail())
    if place.gpu_seconds() <= before:
        raise Failed("it did not use the GPU")
    compared = place.run(["bart", "nrmse", "-t", _MOST, "cpu", "gpu"], timeout=_SECONDS, gpu=False)
    if compared.code != 0:
        raise Failed(f"the normalized error against the CPU's image is {compared.out.strip() or compared.tail()}")
    return f"normalized error against the CPU's image {compared.out.strip()}"


def checks(place):
    for name, row in _RECONSTRUCTIONS.items():
        yield Check(name, functools.partial(_reconstruct, place, *row))


APPLICATION = Application(name="bart", title="BART", root=SID, version_of="bart-cuda", checks=checks)
