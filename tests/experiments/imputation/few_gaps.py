"""Small data sets in the layouts that the imputation experiment reads, made up."""

import lzma

import numpy as np

from data.datasets.digits import write_digits
from seq2tens.data import sprites


def write_gaps(folder):
    """A folder with digits (24 for training, 20 for test), figures and stays."""
    write_digits(folder / "mnist", n_train=24, n_test=20, side=28)
    write_figures(folder / "sprites")
    write_stays(folder / "physionet2012")
    return folder


def write_figures(folder):
    """One action of 1,003 characters, of which three are for test, in two frames."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    np.save(folder / sprites.PALETTE, rng.integers(0, 256, size=(4, 3), dtype=np.uint8))
    blocks = rng.integers(0, 4, size=(1, 1003, 2, 4, 4), dtype=np.uint8)
    with lzma.open(folder / sprites.PICTURES, "wb", preset=0) as file:
        np.save(file, blocks.repeat(16, axis=3).repeat(16, axis=4))


def write_stays(folder):
    """Twenty-four stays as text files; heart rate and temperature only, higher for those who died."""
    (folder / "set-a").mkdir(parents=True)
    rng = np.random.default_rng(1)
    outcomes = ["RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death"]
    for i in range(24):
        record, died = 132_600 + i, i % 3 == 0
        lines = ["Time,Parameter,Value", f"00:00,RecordID,{record}", "00:00,Age,60", "00:00,Gender,1"]
        lines += ["00:00,Height,-1", "00:00,ICUType,2", "00:00,Weight,70"]
        for hour in np.flatnonzero(rng.random(48) < 0.5):
            lines.append(f"{hour:02}:30,HR,{80 + 5 * died + 10 * rng.standard_normal():.1f}")
            lines.append(f"{hour:02}:45,Temp,{37 + rng.standard_normal():.2f}")
        (folder / "set-a" / f"{record}.txt").write_text("\n".join(lines) + "\n")
        outcomes.append(f"{record},6,1,5,-1,{int(died)}")
    (folder / "Outcomes-a.txt").write_text("\n".join(outcomes) + "\n")
