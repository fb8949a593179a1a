// The definition of batch normalisation, which a stack has, too.
#pragma once
#include "check.h"

namespace check {

struct Channels {
  int64_t rows, channels, inner;
  int64_t place(int64_t row, int64_t channel, int64_t j) const { return (row * channels + channel) * inner + j; }
  int64_t size() const { return rows * channels * inner; }
};

struct Normalized {
  std::vector<Number> y, mean, variance;
};

// Values of rows that count get mean 0 and variance 1 in every channel; others become 0.
Normalized normalize(const std::vector<Number>& x, Channels shape, const Mask& mask, double eps);

// Running statistics of channels, which may be missing: a kernel updates them in place.
struct Running {
  Input mean, variance;
  static Running random(Random& random, int64_t channels, bool is_double);
  // How they follow; the mean with a constant that is missing in x.
  void define(const Normalized& batch, const Input& shift, double momentum, const std::string& name,
              Definition& results) const;
  // Copies for a kernel to write on.
  void run(Random& random, bool is_double, const std::string& name, Outcome& results, void*& mean_data,
           void*& variance_data) const;
};

}  // namespace check
