"""Complete models: for imputation, variational autoencoders, and for irregular time series."""
