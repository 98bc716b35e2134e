"""Optimizers on float32 master copies of the parameters; with world > 1, that many processes share each step."""

import math
import os
from collections.abc import Callable, Iterable

import torch
import torch.distributed

from .data import DTYPE


def ranks(out: str, rank: int, world: int) -> tuple[int, int]:
    """This process's number and the number of processes, which meet in a file next to the checkpoint."""
    if world > 1:
        torch.distributed.init_process_group(
            "gloo", init_method="file://" + os.path.abspath(out) + ".meet", rank=rank, world_size=world
        )
    return rank, world


def total(xs: list[torch.Tensor]) -> list[torch.Tensor]:
    """Sums lists of tensors over the processes, in one message."""
    flat = torch.cat([x.flatten() for x in xs])
    torch.distributed.all_reduce(flat)
    return [y.view_as(x) for x, y in zip(xs, flat.split([x.numel() for x in xs]))]


class AdamW32:
    def __init__(self, params, wd=0.01, betas=(0.9, 0.98), part=(0, 1)):
        self.p, self.rank, self.world = [p for p in params if p.requires_grad], *part
        self.m = [p.detach().float().clone() for p in self.p]
        self.a = [torch.zeros_like(x) for x in self.m]
        self.b = [torch.zeros_like(x) for x in self.m]
        self.wd, self.betas, self.t = [wd if p.ndim > 1 else 0.0 for p in self.p], betas, 0

    @torch.no_grad()
    def step(self, lr: float, clip: float = 1.0) -> float:
        """Returns the norm of the gradients before clipping; if it is not finite, changes nothing."""
        g = [(p.grad if p.grad is not None else torch.zeros_like(p)).float() for p in self.p]
        if self.world > 1:
            g = total(g)
            torch._foreach_div_(g, self.world)
        norm = math.sqrt(sum(float((x * x).sum()) for x in g))
        if math.isfinite(norm):
            if norm > clip:
                torch._foreach_mul_(g, clip / norm)
            self.t += 1
            for m, w in zip(self.m, self.wd):
                m.mul_(1 - lr * w)
            self.update(g, lr)
            for p, m in zip(self.p, self.m):
                p.copy_(m)
        for p in self.p:
            p.grad = None
        return norm

    def update(self, g: list[torch.Tensor], lr: float) -> None:
        b1, b2 = self.betas
        torch._foreach_mul_(self.a, b1)
        torch._foreach_add_(self.a, g, alpha=1 - b1)
        torch._foreach_mul_(self.b, b2)
        torch._foreach_addcmul_(self.b, g, g, 1 - b2)
        den = torch._foreach_sqrt(self.b)
        torch._foreach_div_(den, math.sqrt(1 - b2**self.t))
        torch._foreach_add_(den, 1e-8)
        torch._foreach_addcdiv_(self.m, self.a, den, -lr / (1 - b1**self.t))


def orthogonal(x: torch.Tensor) -> torch.Tensor:
    """The matrix with all its singular values moved near 1: five Newton-Schulz steps with the constants of K. Jordan
    et al., "Muon", 2024, in bfloat16 as there, if the processor multiplies it."""
    if x.shape[0] > x.shape[1]:
        return orthogonal(x.T).T
    x = (x / (x.norm() + 1e-7)).to(DTYPE)
    for _ in range(5):
        a = x @ x.T
        x = torch.addmm(x * 3.4445, torch.addmm(a, a, a, beta=-4.7750, alpha=2.0315), x)
    return x


class Muon(AdamW32):
    """For weight matrices: the orthogonalized momentum, with the length of AdamW's steps (0.2 RMS; J. Liu et al., "Muon
    is scalable for LLM training", 2025). Each process computes its share of the matrices."""

    def update(self, g: list[torch.Tensor], lr: float, beta: float = 0.95) -> None:
        torch._foreach_mul_(self.a, beta)
        torch._foreach_add_(self.a, g, alpha=1 - beta)
        u = [torch.zeros_like(x) for x in g]
        for i in range(self.rank, len(g), self.world):
            u[i].copy_(orthogonal(g[i] * (1 - beta) + self.a[i] * beta))
        for m, x in zip(self.m, total(u) if self.world > 1 else u):
            m.add_(x, alpha=-lr * 0.2 * max(x.shape) ** 0.5)


def optimizers(
    named: Iterable[tuple[str, torch.nn.Parameter]],
    kind: Callable[[str, torch.Tensor], tuple[str, bool]],
    part: tuple[int, int] = (0, 1),
) -> tuple[dict, dict[str, torch.Tensor]]:
    """named: names and parameters; kind(name, parameter): a part of the net, and whether it is a matrix for Muon.
    Returns an optimizer for every kind, and the float32 parameters by name."""
    groups = {}
    for n, p in named:
        groups.setdefault(kind(n, p), []).append((n, p))
    opts = {k: (Muon if k[1] else AdamW32)([p for _, p in g], wd=0.02, part=part) for k, g in groups.items()}
    return opts, {n: m for k, g in groups.items() for (n, _), m in zip(g, opts[k].m)}
