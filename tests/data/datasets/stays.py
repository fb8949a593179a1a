"""Small folders in the two layouts of the PhysioNet 2012 challenge, for the tests."""

import numpy as np

from seq2tens.data.datasets.physionet2012 import CHANNELS

NAMES = ("RecordID", "Age", "Gender", "Height", "ICUType", *CHANNELS)
HEADER = "Time,Parameter,Value\n"
COLUMNS = "RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death\n"


def described(record, *lines, icu=4, height=-1, weight=-1):
    """The text of a stay: what is known at admission, then the lines."""
    admission = {
        "RecordID": record,
        "Age": 54,
        "Gender": 0,
        "Height": height,
        "ICUType": icu,
        "Weight": weight,
    }
    first = [f"00:00,{name},{value}" for name, value in admission.items()]
    return HEADER + "\n".join([*first, *lines]) + "\n"


def write_sets(folder, stays, deaths):
    """`stays`: texts by record, by letter of the set."""
    for letter, texts in stays.items():
        (folder / f"set-{letter}").mkdir(parents=True)
        for record, text in texts.items():
            (folder / f"set-{letter}" / f"{record}.txt").write_text(text)
        rows = "".join(f"{record},6,1,5,-1,{deaths[record]}\n" for record in texts)
        (folder / f"Outcomes-{letter}.txt").write_text(COLUMNS + rows)


def as_text(record, minute, parameter, value, names=NAMES):
    """The file of a stay from packed arrays; every digit of a value is kept."""
    rows = zip(minute.tolist(), parameter.tolist(), value, strict=True)
    lines = [f"{m // 60:02d}:{m % 60:02d},{names[p]},{v!s}\n" for m, p, v in rows]
    return HEADER + "".join(lines)


def pack(folder, letter, rows, outcomes):
    """`rows`: record, minute, name of the parameter, value."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "physionet_params.txt").write_text("\n".join(NAMES))
    record, minute, name, value = zip(*rows, strict=True)
    np.savez(
        folder / f"physionet_{letter}.npz",
        record=np.array(record, dtype=np.int32),
        minute=np.array(minute, dtype=np.int16),
        param=np.array([NAMES.index(n) for n in name], dtype=np.uint8),
        value=np.array(value, dtype=np.float32),
        outcomes=np.array([[r, 6, 1, 5, -1, death] for r, death in outcomes.items()], dtype=np.int32),
    )


def rows_of(text):
    """What a file says, as `pack` wants it."""
    lines = [line.split(",") for line in text.splitlines()[1:]]
    record = int(float(next(value for _, name, value in lines if name == "RecordID")))
    return [(record, int(t[:-3]) * 60 + int(t[-2:]), name, float(value)) for t, name, value in lines]
