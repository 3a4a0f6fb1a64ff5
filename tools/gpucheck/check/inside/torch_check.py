# SPDX-License-Identifier: Apache-2.0
"""PyTorch: a matrix product, a residual block and steps of training, as digests, with their times. Status: 0; 77 no PyTorch with CUDA."""
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


def timed(name, call, times=10):
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


a = torch.randn(2048, 2048).cuda()
print(f"RESULT name=matmul value={digest(timed('matmul', lambda: a @ a))}")
block, image = Residual(64).cuda().eval(), torch.randn(8, 64, 56, 56).cuda()
with torch.no_grad():
    print(f"RESULT name=residual_block value={digest(timed('residual_block', lambda: block(image)))}")
model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.GELU(), torch.nn.Linear(1024, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
inputs, labels = torch.randn(256, 512).cuda(), torch.randint(0, 10, (256,)).cuda()


def step():
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss


loss = timed("training_step", step, 20)
print(f"RESULT name=loss_after_21_steps value={step().item():.6f}")
