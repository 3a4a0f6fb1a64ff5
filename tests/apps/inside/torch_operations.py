#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's operations, one by one, against its CPU backend."""
import torch
import torch.nn.functional as F
from torch_compare import both

import checks

R = torch.Generator().manual_seed(7)


def normal(*shape):
    return torch.randn(*shape, generator=R)


def uniform(*shape):
    return torch.rand(*shape, generator=R) * 0.8 + 0.1


def whole(high, *shape):
    return torch.randint(0, high, shape, generator=R)


A, B = normal(33, 65), normal(33, 65)
U = uniform(33, 65)
SQUARE = normal(24, 24)
INDEX = whole(33, 40)
IMAGE = normal(2, 3, 16, 16)

OPERATIONS = {
    # element by element
    "add": lambda: both(torch.add, A, B),
    "sub_mul_div": lambda: both(lambda a, b: (a - b) * a / (b.abs() + 1), A, B),
    "broadcast": lambda: both(lambda a, b: a[:, None, :] * b[None, :, :], A, B),
    "exp_log": lambda: both(lambda a: (torch.exp(a), torch.log(a), torch.log1p(a), torch.expm1(a)), U),
    "sin_cos_tan": lambda: both(lambda a: (torch.sin(a), torch.cos(a), torch.tan(a)), U),
    "hyperbolic": lambda: both(lambda a: (torch.sinh(a), torch.cosh(a), torch.tanh(a), torch.atanh(a)), U),
    "sqrt_rsqrt_pow": lambda: both(lambda a: (torch.sqrt(a), torch.rsqrt(a), a ** 2.5), U),
    "erf_gamma": lambda: both(lambda a: (torch.erf(a), torch.lgamma(a), torch.digamma(a)), U),
    "bessel": lambda: both(lambda a: (torch.special.i0(a), torch.special.i1e(a)), U),
    "floor_round_sign": lambda: both(lambda a: (torch.floor(a), torch.ceil(a), torch.round(a), torch.sign(a)), A),
    "clamp_where": lambda: both(lambda a, b: torch.where(a > 0, a.clamp(-1, 1), b), A, B),
    "compare": lambda: both(lambda a, b: (a < b, a >= b, torch.isclose(a, a), a.isnan()), A, B),
    "integers": lambda: both(lambda a: (a // 7, a % 7, a << 2, a ^ 5, a & 12), whole(1000, 50)),
    "complex": lambda: both(lambda a, b: (torch.complex(a, b) * torch.complex(b, a)).abs(), A, B),
    "half": lambda: both(lambda a, b: a.half() * b.half() + 1, A, B, rtol=1e-2, atol=1e-2),
    "bfloat16": lambda: both(lambda a, b: a.bfloat16() * b.bfloat16(), A, B, rtol=1e-2, atol=1e-2),
    "double": lambda: both(lambda a: torch.exp(a.double()).sum(0), U),
    "convert": lambda: both(lambda a: (a.to(torch.int32), a.to(torch.uint8), a.half().float()), U * 100),
    "lerp_addcmul": lambda: both(lambda a, b: (torch.lerp(a, b, 0.3), torch.addcmul(a, a, b)), A, B),
    # activations and losses
    "relu_family": lambda: both(lambda a: (F.relu(a), F.leaky_relu(a), F.elu(a), F.hardswish(a)), A),
    "gelu_silu_mish": lambda: both(lambda a: (F.gelu(a), F.silu(a), F.mish(a), F.softplus(a)), A),
    "sigmoid": lambda: both(lambda a: (torch.sigmoid(a), F.logsigmoid(a)), A),
    "softmax": lambda: both(lambda a: F.softmax(a, 1), A),
    "softmax_wide": lambda: both(lambda a: F.softmax(a, 1), normal(4, 3000)),
    "log_softmax": lambda: both(lambda a: F.log_softmax(a, 0), A),
    "cross_entropy": lambda: both(F.cross_entropy, A, whole(65, 33)),
    "losses": lambda: both(lambda a, b: (F.mse_loss(a, b), F.l1_loss(a, b), F.smooth_l1_loss(a, b), F.huber_loss(a, b)), A, B),
    "binary_cross_entropy": lambda: both(F.binary_cross_entropy, U, uniform(33, 65)),
    # sums and orders
    "sum_mean": lambda: both(lambda a: (a.sum(), a.mean(1), a.sum(0, keepdim=True)), A),
    "sum_large": lambda: both(lambda a: a.sum(), normal(300000), rtol=1e-3, atol=1e-2),
    "max_min": lambda: both(lambda a: (a.max(), *a.min(1), a.argmax(0), a.amax(1)), A),
    "prod_any_all": lambda: both(lambda a: (a[:, :5].prod(1), (a > 2).any(1), (a > -9).all()), A),
    "std_var_norm": lambda: both(lambda a: (a.std(), a.var(1), a.norm(), a.norm(1, dim=0)), A),
    "logsumexp": lambda: both(lambda a: torch.logsumexp(a, 1), A),
    "cumsum_cumprod": lambda: both(lambda a: (a.cumsum(1), a.cumprod(0), *a.cummax(1)), A, atol=1e-4),
    "sort": lambda: both(lambda a: torch.sort(a, 1), A),
    "sort_long": lambda: both(lambda a: torch.sort(a, stable=True), normal(20000)),
    "topk": lambda: both(lambda a: torch.topk(a, 5, 1), A),
    "median_kth": lambda: both(lambda a: (*a.median(1), *a.kthvalue(3, 1)), A),
    "unique": lambda: both(lambda a: torch.unique(a, return_counts=True), whole(50, 400)),
    "histogram": lambda: both(lambda a: (torch.histc(a, 10, 0, 1), torch.bincount((a * 9).long().flatten())), U),
    "searchsorted": lambda: both(lambda a, b: torch.searchsorted(a, b), torch.sort(normal(100))[0], normal(40)),
    # moving data about
    "cat_stack_split": lambda: both(lambda a, b: (torch.cat((a, b), 1), torch.stack((a, b)), *a.chunk(3)), A, B),
    "transpose_contiguous": lambda: both(lambda a: a.t().contiguous(), A),
    "permute": lambda: both(lambda a: a.permute(2, 0, 3, 1).contiguous(), IMAGE),
    "index_select": lambda: both(lambda a, i: (a[i], torch.index_select(a, 0, i)), A, INDEX),
    "gather_scatter": lambda: both(lambda a, i: (a.gather(0, i), torch.zeros_like(a).scatter(0, i, a)), A, torch.argsort(A, 0)),
    "scatter_add": lambda: both(lambda a, i: torch.zeros(8, 65, device=a.device).index_add(0, i, a), A, whole(8, 33)),
    "masked": lambda: both(lambda a: (a[a > 0], a.masked_fill(a < 0, 9.0), torch.nonzero(a > 1)), A),
    "flip_roll_tril": lambda: both(lambda a: (a.flip(0), a.roll(3, 1), a.tril(), a.triu(1), a.diagonal()), A),
    "pad": lambda: both(lambda a: (F.pad(a, (1, 2, 3, 4)), F.pad(a, (2, 2, 2, 2), "reflect")), IMAGE),
    "repeat_expand": lambda: both(lambda a: (a.repeat(2, 3), a.repeat_interleave(2, 0)), A),
    "arange_linspace_eye": lambda: both(lambda a: (torch.arange(99, device=a.device), torch.linspace(0, 1, 37, device=a.device),
                                                   torch.eye(9, device=a.device)), A),
    "embedding": lambda: both(F.embedding, INDEX, A),
    "embedding_bag": lambda: both(lambda i, a: F.embedding_bag(i, a, mode="sum"), INDEX.view(4, 10), A),
    "one_hot": lambda: both(lambda i: F.one_hot(i, 33), INDEX),
    # matrices
    "matmul": lambda: both(torch.matmul, A, normal(65, 40)),
    "matmul_256": lambda: both(torch.matmul, normal(256, 256), normal(256, 256), rtol=1e-3, atol=1e-3),
    "matmul_half": lambda: both(lambda a, b: a.half() @ b.half(), A, normal(65, 40), rtol=2e-2, atol=5e-2),
    "matmul_bfloat16": lambda: both(lambda a, b: a.bfloat16() @ b.bfloat16(), A, normal(65, 40), rtol=5e-2, atol=2e-1),
    "matmul_double": lambda: both(lambda a, b: a.double() @ b.double(), A, normal(65, 40)),
    "bmm": lambda: both(torch.bmm, normal(5, 17, 33), normal(5, 33, 9)),
    "matrix_vector": lambda: both(lambda a, b: (a @ b[0], torch.dot(a[0], b[0]), torch.outer(a[0], b[0])), A, B, atol=1e-4),
    "addmm_linear": lambda: both(F.linear, A, normal(20, 65), normal(20), atol=1e-4),
    "einsum": lambda: both(lambda a, b: torch.einsum("ij,kj->ik", a, b), A, B, atol=1e-4),
    "kron": lambda: both(torch.kron, normal(4, 5), normal(3, 2)),
    # layers
    "conv1d": lambda: both(lambda x, w: F.conv1d(x, w, padding=1), normal(2, 3, 40), normal(5, 3, 3), atol=1e-4),
    "conv2d": lambda: both(lambda x, w: F.conv2d(x, w, padding=1), IMAGE, normal(4, 3, 3, 3), atol=1e-4),
    "conv2d_stride_dilation": lambda: both(lambda x, w: F.conv2d(x, w, stride=2, dilation=2), IMAGE, normal(4, 3, 3, 3), atol=1e-4),
    "conv2d_depthwise": lambda: both(lambda x, w: F.conv2d(x, w, padding=1, groups=3), IMAGE, normal(3, 1, 3, 3), atol=1e-4),
    "conv3d": lambda: both(F.conv3d, normal(1, 2, 6, 6, 6), normal(3, 2, 3, 3, 3), atol=1e-4),
    "conv_transpose2d": lambda: both(lambda x, w: F.conv_transpose2d(x, w, stride=2), IMAGE, normal(3, 4, 3, 3), atol=1e-4),
    "max_pool": lambda: both(lambda x: F.max_pool2d(x, 2), IMAGE),
    "avg_pool": lambda: both(lambda x: (F.avg_pool2d(x, 3, 2), F.adaptive_avg_pool2d(x, 5)), IMAGE),
    "batch_norm": lambda: both(lambda x: F.batch_norm(x, None, None, training=True), IMAGE),
    "layer_norm": lambda: both(lambda x: F.layer_norm(x, (65,)), A),
    "group_norm": lambda: both(lambda x: F.group_norm(x, 3), IMAGE),
    "interpolate": lambda: both(lambda x: (F.interpolate(x, scale_factor=2), F.interpolate(x, size=9, mode="bilinear")), IMAGE),
    "grid_sample": lambda: both(lambda x, g: F.grid_sample(x, g, align_corners=False), IMAGE, uniform(2, 8, 8, 2)),
    "unfold_fold": lambda: both(lambda x: F.unfold(x, 3), IMAGE),
    "pixel_shuffle": lambda: both(lambda x: F.pixel_shuffle(x, 2), normal(2, 12, 5, 5)),
    "cdist": lambda: both(torch.cdist, A, B, atol=1e-3),
    "cosine_similarity": lambda: both(F.cosine_similarity, A, B),
    "attention": lambda: both(F.scaled_dot_product_attention, normal(2, 4, 20, 16), normal(2, 4, 20, 16), normal(2, 4, 20, 16)),
    "attention_causal": lambda: both(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
                                     normal(1, 2, 40, 32), normal(1, 2, 40, 32), normal(1, 2, 40, 32)),
}

for operation, function in OPERATIONS.items():
    checks.add(operation, function)


def prepare():
    torch.backends.cudnn.enabled = False


raise SystemExit(checks.main(prepare))
