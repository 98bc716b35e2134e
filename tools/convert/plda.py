"""Convert the PLDA of pyannote's speaker-diarization-community-1 to Otograph's plda.json.

usage: python3 tools/convert/plda.py [--length L] FOLDER OUT/plda.json

FOLDER holds xvec_transform.npz and plda.npz (the folder plda/ of the published model). OUT is the
folder of its embedder, WeSpeaker's voxceleb ResNet34-LM. Requires numpy and scipy.

The published transform is diagonalized as pyannote does it when it loads the files: afterwards the
covariance within a voice is I, and the covariance between voices is diagonal, in descending order.
mean1 is the mean of vectors as the network returns them, whose usual length for windows of 1.5 s is
L; Otograph's have the length 1.
"""

import argparse
import json
import os

import numpy as np
from scipy.linalg import eigh


def main() -> None:
    p = argparse.ArgumentParser()
    p.add_argument("folder")
    p.add_argument("out")
    p.add_argument("--length", type=float, default=2.68, help="usual length of the network's vectors")
    a = p.parse_args()
    x = np.load(os.path.join(a.folder, "xvec_transform.npz"))
    plda = np.load(os.path.join(a.folder, "plda.npz"))
    tr, psi = plda["tr"], plda["psi"]
    within = np.linalg.inv(tr.T @ tr)
    between = np.linalg.inv((tr.T / psi) @ tr)
    variances, vectors = eigh(between, within)
    fields = {
        "mean1": x["mean1"] / a.length,
        "lda": x["lda"],
        "mean2": x["mean2"],
        "plda_mu": plda["mu"],
        "plda_tr": vectors.T[::-1],
        "plda_psi": variances[::-1],
    }
    with open(a.out, "w") as f:
        json.dump({k: np.asarray(v, float).ravel().tolist() for k, v in fields.items()}, f)
    print(f"{a.out}: {len(fields['mean1'])} numbers to {len(psi)}")


if __name__ == "__main__":
    main()
