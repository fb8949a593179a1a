"""Export of modules for other runtimes: `torch.export` and ONNX, for any number of sequences and steps."""

from seq2tens.exporting.onnx import to_onnx
from seq2tens.exporting.preparation import PreparationModule, Standardisation
from seq2tens.exporting.program import export
from seq2tens.exporting.recursion import scan

__all__ = ["PreparationModule", "Standardisation", "export", "scan", "to_onnx"]
