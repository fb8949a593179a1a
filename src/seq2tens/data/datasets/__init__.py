"""Data sets by name, and those that need more than a reader. None of them is downloaded."""

from seq2tens.data.datasets import healing_mnist, mnist, physionet2012, sprites
from seq2tens.data.datasets._folders import dataset_folder as dataset_folder
from seq2tens.data.datasets._folders import existing_file as existing_file
from seq2tens.data.datasets.archives import available_datasets, load_dataset

__all__ = ["available_datasets", "healing_mnist", "load_dataset", "mnist", "physionet2012", "sprites"]
