"""CTC prefix beam search (Hannun and others 2014, no language model), with the bounds of the program's search."""

import math


def prefix_beam(rows: list[list[float]], width: int = 10, floor: float = math.log(0.005), top: int = 16) -> list[int]:
    """rows: lists of log probabilities, the blank first"""
    none = -math.inf

    def add(a, b):
        a, b = max(a, b), min(a, b)
        return a if b == none else a + math.log1p(math.exp(b - a))

    beam = {(): (0.0, none)}  # the paths of a prefix that end in a blank, and in its last token
    for r in rows:
        extend = (
            sorted((k for k in range(1, len(r)) if r[k] >= floor), key=lambda k: -r[k])[:top]
            if r[0] <= math.log(0.95)
            else []
        )
        new = {}

        def grow(p, blank, token):
            b, t = new.get(p, (none, none))
            new[p] = add(b, blank), add(t, token)

        for p, (b, t) in beam.items():
            grow(p, add(b, t) + r[0], t + r[p[-1]] if p else none)
            for k in extend:
                grow(p + (k,), none, (b if p and p[-1] == k else add(b, t)) + r[k])
        beam = dict(sorted(new.items(), key=lambda x: -add(*x[1]))[:width])
    return list(max(beam, key=lambda p: add(*beam[p])))
