# SPDX-License-Identifier: Apache-2.0
"""PyTorch: a matrix product, a residual block and steps of training, as digests, with their times, each by
itself: a line RESULT, or NOTHING with the reason. --small: for a GPU that is slow. Status: 0; 77 no PyTorch with CUDA."""
import hashlib
import sys
import time

try:
    import torch
except ImportError:
    print("python3 has no torch")
    sys.exit(77)
if not torch.cuda.is_available():
    print("torch sees no GPU")
    sys.exit(77)

torch.manual_seed(1)
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.backends.cudnn.deterministic = True
torch.backends.cudnn.benchmark = False


def digest(tensor):
    return hashlib.sha256(tensor.detach().float().cpu().contiguous().numpy().tobytes()).hexdigest()[:16] + "x"


def timed(name, call, times):
    result = call()
    torch.cuda.synchronize()
    begun = time.monotonic()
    for _ in range(times):
        call()
    torch.cuda.synchronize()
    print(f"TIME name={name}_ms value={1000 * (time.monotonic() - begun) / times:.3f}", flush=True)
    return result


class Residual(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.one, self.two = (torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norm = torch.nn.BatchNorm2d(channels)

    def forward(self, x):
        return torch.relu(self.two(torch.relu(self.norm(self.one(x)))) + x)


SMALL = "--small" in sys.argv
TIMES, SIZE, CHANNELS, IMAGE = (1, 64, 4, 8) if SMALL else (10, 2048, 64, 56)


def matmul():
    a = torch.randn(SIZE, SIZE).cuda()
    return digest(timed("matmul", lambda: a @ a, TIMES))


def residual_block():
    block, image = Residual(CHANNELS).cuda().eval(), torch.randn(8, CHANNELS, IMAGE, IMAGE).cuda()
    with torch.no_grad():
        return digest(timed("residual_block", lambda: block(image), TIMES))


def training():
    model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 10)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    inputs, labels = torch.randn(256, 512).cuda(), torch.randint(0, 10, (256,)).cuda()

    def step():
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        return loss

    timed("training_step", step, 2 * TIMES)
    return f"{step().item():.6f}"


results = 0
for measure in (matmul, residual_block, training):
    torch.manual_seed(1)
    try:
        print(f"RESULT name={measure.__name__} value={measure()}", flush=True)
        results += 1
    except RuntimeError as why:
        print(f"NOTHING name={measure.__name__} why={'_'.join(str(why).split())[:200]}", flush=True)
sys.exit(0 if results else 1)
