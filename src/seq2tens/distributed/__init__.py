"""More than one process: sequences that are split along time over the ranks of a group."""

from seq2tens.distributed.gradients import sum_gradients
from seq2tens.distributed.layer import ls2t
from seq2tens.distributed.networks import SequenceParallel, sequence_parallel

__all__ = ["SequenceParallel", "ls2t", "sequence_parallel", "sum_gradients"]
