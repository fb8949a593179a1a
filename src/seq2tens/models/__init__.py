"""Models beyond the layers of `nn`: those that other methods are compared with."""
