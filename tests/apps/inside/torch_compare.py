# SPDX-License-Identifier: Apache-2.0
"""The same computation on PyTorch's CPU backend and on the GPU."""
import torch


def to_device(value, device):
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, (list, tuple)):
        return type(value)(to_device(one, device) for one in value)
    return value


def flat(value):
    """All tensors of an answer, on the CPU; numbers become tensors."""
    if isinstance(value, torch.Tensor):
        return [value.detach().to("cpu")]
    if isinstance(value, (list, tuple)):
        return [one for part in value for one in flat(part)]
    return [torch.tensor(value)]


def same(seen, expected, rtol=1e-4, atol=1e-5):
    """Raises where they differ by more than the tolerance; else says the greatest difference."""
    seen, expected = flat(seen), flat(expected)
    assert len(seen) == len(expected), f"{len(seen)} answers instead of {len(expected)}"
    worst = 0.0
    for one, other in zip(seen, expected):
        assert one.shape == other.shape, f"shape {tuple(one.shape)} instead of {tuple(other.shape)}"
        assert one.dtype == other.dtype, f"{one.dtype} instead of {other.dtype}"
        if one.is_sparse or other.is_sparse:
            one, other = one.to_dense(), other.to_dense()
        if other.is_floating_point() or other.is_complex():
            wide = torch.complex128 if other.is_complex() else torch.float64
            difference = (one.to(wide) - other.to(wide)).abs()
            known = ~torch.isnan(difference)
            if known.any():
                worst = max(worst, difference[known].max().item())
            torch.testing.assert_close(one, other, rtol=rtol, atol=atol, equal_nan=True)
        else:
            assert torch.equal(one, other), f"{(one != other).sum().item()} of {other.numel()} differ"
    return f"greatest difference {worst:.1e}" if worst else "equal"


def both(function, *arguments, rtol=1e-4, atol=1e-5):
    """function(*arguments) on both; says the greatest difference."""
    expected = function(*arguments)
    seen = function(*to_device(arguments, "cuda"))
    torch.cuda.synchronize()
    return same(seen, expected, rtol, atol)
