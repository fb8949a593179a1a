"""Whether one operation may stand for several modules, or these have to be called one by one.

An operation that does the work of modules knows their parameters and options, and nothing else of what they
may have become since: a hook, a subclass, a parametrisation, frozen statistics.
"""

from __future__ import annotations

from typing import TypeGuard, TypeVar

from torch import nn
from torch.nn.modules.module import _has_any_global_hook

M = TypeVar("M", bound=nn.Module)


def is_plain(module: object, cls: type[M]) -> TypeGuard[M]:
    """Whether to call the module in training is, now, to run the `forward` of just this class.

    Parametrisations make a class of their own. Pruning and the older weight norms are hooks.
    """
    if type(module) is not cls or not module.training or "forward" in module.__dict__:
        return False
    hooked = module._forward_hooks or module._forward_pre_hooks
    hooked = hooked or module._backward_hooks or module._backward_pre_hooks
    return not hooked and not _has_any_global_hook() and module._compiled_call_impl is None
