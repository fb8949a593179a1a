"""Sequence parallelism: sequences that are split along time over the ranks of a process group."""

from seq2tens._moved import moved_names
from seq2tens.distributed.gradients import sum_gradients
from seq2tens.distributed.layer import ls2t
from seq2tens.distributed.networks import SequenceParallel, sequence_parallel
from seq2tens.distributed.synchronized import Peers as Peers
from seq2tens.distributed.synchronized import synchronized as synchronized

__all__ = ["SequenceParallel", "ls2t", "sequence_parallel", "sum_gradients"]

# torchrun reports a process that has ended, so there is no need to watch processes any more.
__getattr__ = moved_names(
    __name__, {"ProcessLost": "builtins.RuntimeError", "watched": "contextlib.nullcontext"}
)
