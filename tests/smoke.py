"""Smoke test of a fresh installation: `python tests/smoke.py`, with only the package installed.

Prints which kernels are loaded, and the seconds from `import torch` until the first layer has run forwards
and backwards and the first signature is computed. Fails without kernels.
"""

import sys
import time

import torch


def main() -> None:
    started = time.perf_counter()
    from seq2tens import LS2T, signature
    from seq2tens.ops import backends, kernels

    x = torch.randn(4, 50, 3, requires_grad=True)
    layer = LS2T(3, 16, order=3)
    layer(x).square().mean().backward()
    signature(x, 3).flatten().sum().backward()
    seconds = time.perf_counter() - started

    print(f"kernels: {kernels()}")
    print(f"first layer, gradient and signature: {seconds:.2f} s after torch")
    if backends()["cpu"] is not None:
        sys.exit("the kernels are not there")
    reference = LS2T(3, 16, order=3, backend="reference")
    reference.load_state_dict(layer.state_dict())
    torch.testing.assert_close(layer(x), reference(x), rtol=1e-4, atol=1e-4)


if __name__ == "__main__":
    main()
