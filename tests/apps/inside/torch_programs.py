#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What programs do with PyTorch: layers with gradients, libraries behind it, streams, graphs, training."""
import copy
import time

import torch
import torch.nn.functional as F
from torch import nn
from torch_compare import both, same

import checks
from checks import check


def seeded(make):
    torch.manual_seed(3)
    return make()


def gradients(model, *inputs, loss=lambda out: out.square().mean(), rtol=1e-3, atol=1e-4):
    """Output and all gradients, on both."""
    def run(device):
        mine = copy.deepcopy(model).to(device)
        out = mine(*(one.to(device) for one in inputs))
        out = out[0] if isinstance(out, tuple) else out
        loss(out).backward()
        return [out] + [parameter.grad for parameter in mine.parameters()]
    return same(run("cuda"), run("cpu"), rtol, atol)


@check
def device():
    properties = torch.cuda.get_device_properties(0)
    major, minor = torch.cuda.get_device_capability()
    return f"{properties.name}, capability {major}.{minor}, {properties.total_memory >> 20} MiB"


@check
def copies():
    data = torch.randn(1 << 18)
    pinned = data.pin_memory()
    there = pinned.to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    return same((there, there.clone(), data.cuda()[::7]), (data, data, data[::7]))


@check
def random_numbers():
    torch.cuda.manual_seed(1)
    first = torch.rand(100000, device="cuda")
    torch.cuda.manual_seed(1)
    again = torch.rand(100000, device="cuda")
    assert torch.equal(first, again), "the same seed gives other numbers"
    assert abs(first.mean().item() - 0.5) < 0.01, first.mean().item()
    drawn = torch.randn(100000, device="cuda")
    assert abs(drawn.std().item() - 1) < 0.02, drawn.std().item()
    assert sorted(torch.randperm(1000, device="cuda").tolist()) == list(range(1000))
    return "uniform, normal, permutation"


@check
def dropout_multinomial():
    kept = (F.dropout(torch.ones(100000, device="cuda"), 0.25) > 0).float().mean().item()
    assert abs(kept - 0.75) < 0.02, kept
    drawn = torch.multinomial(torch.tensor([0.1, 0.9], device="cuda"), 10000, replacement=True).float().mean().item()
    assert abs(drawn - 0.9) < 0.03, drawn
    return f"kept {kept:.3f}, drawn {drawn:.3f}"


@check
def autograd():
    return gradients(seeded(lambda: nn.Sequential(nn.Linear(20, 30), nn.Tanh(), nn.Linear(30, 5))), torch.randn(8, 20))


@check
def convolution_gradients():
    return gradients(seeded(lambda: nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2),
                                                  nn.Conv2d(6, 4, 3))), torch.randn(2, 3, 12, 12))


@check
def lstm():
    return gradients(seeded(lambda: nn.LSTM(10, 16, 2, batch_first=True)), torch.randn(3, 7, 10))


@check
def gru():
    return gradients(seeded(lambda: nn.GRU(10, 16, batch_first=True)), torch.randn(3, 7, 10))


@check
def multihead_attention():
    model = seeded(lambda: nn.MultiheadAttention(32, 4, batch_first=True))
    data = torch.randn(2, 9, 32)
    return gradients(model, data, data, data)


@check
def transformer_encoder():
    model = seeded(lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True), 2))
    return gradients(model, torch.randn(2, 9, 32))


@check
def sparse_matmul():
    dense = torch.randn(30, 40) * (torch.rand(30, 40) < 0.2)
    return both(lambda m, v: (m.to_sparse() @ v, m.to_sparse_csr() @ v), dense, torch.randn(40, 7), atol=1e-4)


@check
def sparse_coalesce():
    index = torch.randint(0, 9, (2, 60))
    return both(lambda i, v: torch.sparse_coo_tensor(i, v, (9, 9)).coalesce().to_dense(), index, torch.randn(60))


@check
def fft():
    return both(lambda a: torch.fft.fft(a), torch.randn(4, 64), atol=1e-3)


@check
def fft_real_2d():
    return both(lambda a: (torch.fft.rfft2(a), torch.fft.irfft(torch.fft.rfft(a))), torch.randn(3, 24, 20), atol=1e-3)


@check
def fft_odd():
    return both(lambda a: torch.fft.ifft(a), torch.randn(2, 77, dtype=torch.complex64), atol=1e-3)


@check
def stft():
    return both(lambda a, w: torch.stft(a, 64, window=w, return_complex=True), torch.randn(512), torch.hann_window(64), atol=1e-3)


def linear_algebra(name, function, positive=False):
    def run():
        data = seeded(lambda: torch.randn(3, 12, 12))
        data = data @ data.transpose(1, 2) + 12 * torch.eye(12) if positive else data
        return both(function, data, rtol=1e-3, atol=1e-3)
    checks.add(f"linalg_{name}", run)


linear_algebra("cholesky", torch.linalg.cholesky, positive=True)
linear_algebra("solve", lambda a: torch.linalg.solve(a, a[:, :, :3] * 2))
linear_algebra("inverse_det", lambda a: (torch.linalg.inv(a), torch.linalg.slogdet(a)[1]))
linear_algebra("lu", lambda a: torch.linalg.lu(a))
linear_algebra("qr", lambda a: torch.linalg.qr(a)[1].abs())
linear_algebra("eigh", lambda a: torch.linalg.eigh(a)[0], positive=True)
linear_algebra("svd", lambda a: torch.linalg.svdvals(a))
linear_algebra("triangular", lambda a: torch.linalg.solve_triangular(a.triu(), a[:, :, :2], upper=True), positive=True)


@check
def amp():
    model = seeded(lambda: nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cuda")
    data, goal = torch.randn(16, 32, device="cuda"), torch.randint(0, 10, (16,), device="cuda")
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.float16):
            out = model(data)
            loss = F.cross_entropy(out, goal)
        assert out.dtype == torch.float16
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    assert losses[-1] < losses[0], losses
    return f"loss {losses[0]:.3f} to {losses[-1]:.3f}"


@check
def streams():
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    data = torch.randn(200, 200)
    torch.cuda.synchronize()
    with torch.cuda.stream(first):
        there = data.cuda(non_blocking=True)
        square = there @ there
    second.wait_stream(first)
    with torch.cuda.stream(second):
        answer = square + 1
    second.synchronize()
    return same(answer, data @ data + 1, 1e-3, 1e-3)


@check
def events():
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    torch.ones(1 << 18, device="cuda").sin().sum()
    end.record()
    end.synchronize()
    assert end.query() and begin.elapsed_time(end) > 0
    return f"{begin.elapsed_time(end):.2f} ms"


@check
def memory_statistics():
    before = torch.cuda.memory_allocated()
    kept = torch.empty(1 << 20, device="cuda")
    assert torch.cuda.memory_allocated() - before == kept.numel() * 4
    del kept
    torch.cuda.empty_cache()
    assert torch.cuda.memory_allocated() == before
    free, total = torch.cuda.mem_get_info()
    assert 0 < free < total
    return f"{free >> 20} of {total >> 20} MiB free"


@check
def out_of_memory():
    try:
        torch.empty(1 << 40, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        return same(torch.ones(9, device="cuda") * 2, torch.ones(9) * 2)
    raise AssertionError("a tebibyte was given out")


@check
def graph():
    static = torch.zeros(64, 64, device="cuda")
    warm = torch.cuda.Stream()
    warm.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm):
        (static @ static).relu().sum(0)
    torch.cuda.current_stream().wait_stream(warm)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        out = (static @ static).relu().sum(0)
    data = torch.randn(64, 64)
    static.copy_(data)
    captured.replay()
    return same(out, (data @ data).relu().sum(0), 1e-3, 1e-3)


@check
def graphed_callable():
    model = seeded(lambda: nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)))
    on_gpu = copy.deepcopy(model).cuda()
    graphed = torch.cuda.make_graphed_callables(on_gpu, (torch.randn(8, 16, device="cuda"),))
    data = torch.randn(8, 16)
    out = graphed(data.cuda())
    out.square().mean().backward()
    expected = model(data)
    expected.square().mean().backward()
    return same([out] + [p.grad for p in on_gpu.parameters()], [expected] + [p.grad for p in model.parameters()], 1e-3, 1e-4)


@check
def jiterator():
    square = torch.cuda.jiterator._create_jit_fn("template <typename T> T twice_plus(T x, T y) { return 2 * x + y; }")
    a, b = torch.randn(100), torch.randn(100)
    return same(square(a.cuda(), b.cuda()), 2 * a + b)


def train(model, data, goal, loss, optimizer, steps):
    """Losses of all steps on both, and what a step took as a ratio."""
    def run(device):
        mine = copy.deepcopy(model).to(device)
        rule = optimizer(mine.parameters())
        x, y = data.to(device), goal.to(device)
        losses, begin = [], 0.0
        for step in range(steps + 1):
            if step == 1:
                begin = time.monotonic()  # the first one loads the kernels
            rule.zero_grad()
            now = loss(mine(x), y)
            now.backward()
            rule.step()
            losses.append(now.item())
        return losses, (time.monotonic() - begin) / steps
    expected, cpu = run("cpu")
    seen, gpu = run("cuda")
    worst = max(abs(a - b) / abs(b) for a, b in zip(seen, expected))
    assert worst < 1e-3, f"losses {seen}, the CPU's {expected}"
    assert expected[-1] < expected[0], expected
    return (f"{steps + 1} steps, loss {seen[0]:.4f} to {seen[-1]:.4f}, at most {worst:.1e} from the CPU's; "
            f"a step takes {gpu * 1e3:.0f} ms, {gpu / cpu:.0f} times the CPU backend's")


@check
def train_mlp():
    model = seeded(lambda: nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)))
    return train(model, torch.randn(64, 64), torch.randint(0, 10, (64,)), F.cross_entropy,
                 lambda p: torch.optim.Adam(p, 1e-2), 6)


@check
def train_convolutions():
    model = seeded(lambda: nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                                         nn.Linear(8 * 49, 10)))
    return train(model, torch.randn(8, 1, 14, 14), torch.randint(0, 10, (8,)), F.cross_entropy,
                 lambda p: torch.optim.SGD(p, 0.05, momentum=0.9), 4)


class TinyTransformer(nn.Module):
    """Predicts the next of 32 words."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(32, 48)
        self.places = nn.Parameter(torch.randn(16, 48) * 0.1)
        self.body = nn.TransformerEncoder(nn.TransformerEncoderLayer(48, 4, 96, 0.0, batch_first=True, norm_first=True), 2,
                                          enable_nested_tensor=False)
        self.head = nn.Linear(48, 32)

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
        return self.head(self.body(self.words(x) + self.places, mask=mask, is_causal=True))


@check
def train_transformer():
    data = torch.randint(0, 32, (4, 17), generator=torch.Generator().manual_seed(5))
    return train(seeded(TinyTransformer), data[:, :-1], data[:, 1:],
                 lambda out, goal: F.cross_entropy(out.reshape(-1, 32), goal.reshape(-1)),
                 lambda p: torch.optim.AdamW(p, 3e-3), 4)


def prepare():
    torch.backends.cudnn.enabled = False


raise SystemExit(checks.main(prepare))
