# SPDX-License-Identifier: Apache-2.0
"""ffmpeg's CUDA filters, against its filters on the CPU where the two compute the same."""
import functools

from applib.application import Application, Check, Failed

from .shared_roots import TOOLS

_SECONDS = 60
_AT_EDGES = 0.02  # of all samples: the filters treat the edges of a picture each in its own way
_SOURCE = ("-f", "lavfi", "-i", "testsrc2=size=352x288:rate=3:duration=1", "-pix_fmt", "yuv420p")
_FILTERS = {  # check: (on the GPU, the same on the CPU or None, how far samples may be apart)
    "upload and download": ("format=yuv420p,hwupload_cuda,hwdownload,format=yuv420p", "format=yuv420p", 0),
    "scale_cuda nearest": ("format=yuv420p,hwupload_cuda,scale_cuda=176:144:interp_algo=nearest,hwdownload,format=yuv420p", None, 0),
    "scale_cuda bicubic": ("format=yuv420p,hwupload_cuda,scale_cuda=176:144,hwdownload,format=yuv420p",
                           "format=yuv420p,scale=176:144:flags=bicubic", 60),
    "yadif_cuda": ("format=yuv420p,hwupload_cuda,yadif_cuda,hwdownload,format=yuv420p", "format=yuv420p,yadif", 2),
    "bwdif_cuda": ("format=yuv420p,hwupload_cuda,bwdif_cuda=mode=send_frame,hwdownload,format=yuv420p", "format=yuv420p,bwdif=mode=send_frame", 2),
    "thumbnail_cuda": ("format=yuv420p,hwupload_cuda,thumbnail_cuda=2,hwdownload,format=yuv420p", "format=yuv420p,thumbnail=2", 0),
    "bilateral_cuda": ("format=yuv420p,hwupload_cuda,bilateral_cuda=sigmaS=2:sigmaR=20,hwdownload,format=yuv420p", None, 0),
    "overlay_cuda": ("format=yuv420p,hwupload_cuda,split[a][b];[b]scale_cuda=64:64[c];[a][c]overlay_cuda=10:10,hwdownload,format=yuv420p",
                     None, 0),
    "chromakey_cuda": ("format=yuv420p,hwupload_cuda,chromakey_cuda=0x107010:0.2,hwdownload,format=yuva420p,format=yuv420p", None, 0),
    "colorspace_cuda": ("format=yuv420p,hwupload_cuda,colorspace_cuda=range=pc,hwdownload,format=yuv420p", None, 0),
}


def _frames(place, filters, name, gpu):
    place.must(["ffmpeg", "-hide_banner", "-loglevel", "error", "-y", *(("-init_hw_device", "cuda=gpu", "-filter_hw_device", "gpu")
                if gpu else ()), *_SOURCE, "-filter_complex", filters, "-f", "rawvideo", f"/data/{name}"], timeout=_SECONDS, gpu=gpu)
    return place.read(name)


def _filter(place, on_gpu, on_cpu, most):
    seen = _frames(place, on_gpu, "gpu.yuv", gpu=True)
    if len(set(seen)) < 16:
        raise Failed(f"{len(seen)} bytes with {len(set(seen))} values are no picture")
    if on_cpu is None:
        return f"{len(seen)} bytes of frames"
    expected = _frames(place, on_cpu, "cpu.yuv", gpu=False)
    if len(seen) != len(expected):
        raise Failed(f"{len(seen)} bytes, the CPU's filter writes {len(expected)}")
    differences = [abs(a - b) for a, b in zip(seen, expected)]
    far = sum(difference > most for difference in differences) / len(differences)
    said = f"{100 * far:.2f} % of the samples differ by more than {most} from the CPU's, the most by {max(differences)}"
    if far > _AT_EDGES:
        raise Failed(said)
    return said


def checks(place):
    for name, row in _FILTERS.items():
        yield Check(name, functools.partial(_filter, place, *row))


APPLICATION = Application(name="ffmpeg", title="ffmpeg", root=TOOLS, version_of="ffmpeg", checks=checks)
