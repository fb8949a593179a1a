"""Export of modules for other runtimes: `torch.export` and ONNX, for any number of sequences and steps."""

from seq2tens._moved import moved_names
from seq2tens.exporting.onnx import to_onnx
from seq2tens.exporting.preparation import PreparationModule, Standardization
from seq2tens.exporting.program import export
from seq2tens.exporting.recursion import scan

__all__ = ["PreparationModule", "Standardization", "export", "scan", "to_onnx"]

__getattr__ = moved_names(__name__, {"Standardisation": f"{__name__}.Standardization"})
