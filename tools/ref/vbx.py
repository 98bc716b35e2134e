"""Test case for PLDA and VBx: vectors, the parameters of a PLDA as two published files hold them,
the parameters as plda.json holds them, and the speakers that numpy finds.

usage: python3 tools/ref/vbx.py OUT.json

The steps are those of pyannote's community-1 (F. Landini et al. 2022, without transitions).
"""

import json
import sys

import numpy as np
from scipy.linalg import eigh
from scipy.special import logsumexp, softmax


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def diagonal(tr: np.ndarray, psi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The transform after which the covariance within a voice is I and the covariance between
    voices diagonal, in descending order; and that diagonal."""
    within = np.linalg.inv(tr.T @ tr)
    between = np.linalg.inv((tr.T / psi) @ tr)
    values, vectors = eigh(between, within)
    return vectors.T[::-1], values[::-1]


def project(x: np.ndarray, p: dict) -> np.ndarray:
    y = np.sqrt(len(p["mean1"])) * unit(x - p["mean1"]) @ p["lda"] - p["mean2"]
    return (np.sqrt(len(p["mean2"])) * unit(y) - p["plda_mu"]) @ p["plda_tr"].T


def vbx(x: np.ndarray, gamma: np.ndarray, phi: np.ndarray, fa: float, fb: float) -> tuple[np.ndarray, np.ndarray]:
    n, d = x.shape
    pi = np.full(gamma.shape[1], 1 / gamma.shape[1])
    shared = -0.5 * ((x**2).sum(1, keepdims=True) + d * np.log(2 * np.pi))
    rho = x * np.sqrt(phi)
    last = None
    for _ in range(20):
        variance = 1 / (1 + fa / fb * gamma.sum(0)[:, None] * phi)
        mean = fa / fb * variance * (gamma.T @ rho)
        log = fa * (rho @ mean.T - 0.5 * (variance + mean**2) @ phi + shared) + np.log(pi + 1e-8)
        total = logsumexp(log, axis=1)
        gamma = np.exp(log - total[:, None])
        pi = gamma.sum(0) / gamma.sum()
        bound = total.sum() + fb * 0.5 * (np.log(variance) - variance - mean**2 + 1).sum()
        if last is not None and bound - last < 1e-4:
            break
        last = bound
    return gamma, pi


def main() -> None:
    r = np.random.default_rng(7)
    size, reduced, people = 8, 5, 3
    voices = r.standard_normal((people, size))
    true = np.repeat(np.arange(people), [9, 6, 3])
    x = np.round(unit(voices[true] + 0.2 * r.standard_normal((len(true), size))), 5).astype(np.float32)
    tr, psi = diagonal(r.standard_normal((reduced, reduced)), np.array([3, 20, 8, 5, 0.5]))
    p = {
        "mean1": 0.2 * r.standard_normal(size),
        "lda": r.standard_normal((size, reduced)),
        "mean2": 0.3 * r.standard_normal(reduced),
        "plda_mu": 0.1 * r.standard_normal(reduced),
        "plda_tr": tr,
        "plda_psi": psi,
    }
    z = project(x.astype(float), p)
    start = np.array([0, 1] * 4 + [0] + [2, 3] * 3 + [4] * 3)  # each person but the last in two clusters
    runs = []
    for fa, fb in ((0.07, 0.8), (0.5, 1.0), (2.0, 0.5)):
        gamma, pi = vbx(z, softmax(7 * np.eye(5)[start], axis=1), psi, fa, fb)
        runs.append({"fa": fa, "fb": fb, "gamma": gamma.ravel().tolist(), "pi": pi.tolist()})
        print(fa, fb, gamma.argmax(1), np.round(pi, 3))
    out = {
        "plda": {k: v.ravel().tolist() for k, v in p.items()},
        "vectors": x.astype(float).round(5).ravel().tolist(),
        "projected": z.ravel().tolist(),
        "clusters": start.tolist(),
        "runs": runs,
    }
    with open(sys.argv[1], "w") as f:
        json.dump(out, f, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main()
