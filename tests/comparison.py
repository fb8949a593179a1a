"""Names for what a test compares: `assert_close` of torch names the key in which two dictionaries differ."""

from collections.abc import Iterable

from torch import Tensor, nn


def named(names: str, values: Iterable[Tensor]) -> dict[str, Tensor]:
    """Name values in their order, the names separated by spaces; the last names may be left over."""
    values = list(values)
    assert len(values) <= len(names.split())
    return dict(zip(names.split(), values, strict=False))


def gradients_of(module: nn.Module, values: Iterable[Tensor]) -> dict[str, Tensor]:
    """Name gradients after the parameters of a module, in their order."""
    return {f"d{name}": value for (name, _), value in zip(module.named_parameters(), values, strict=True)}
