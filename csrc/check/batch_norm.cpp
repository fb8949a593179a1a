// Batch normalisation and its adjoint.
#include <algorithm>

#include "check.h"

namespace check {
namespace {

struct Channels {
  int64_t rows, channels, inner;
  int64_t place(int64_t row, int64_t channel, int64_t j) const { return (row * channels + channel) * inner + j; }
  int64_t size() const { return rows * channels * inner; }
};

struct Normalized {
  std::vector<Number> y, mean, variance;
};

// Running statistics of channels, which a kernel updates in place; they may be missing.
struct Running {
  Input mean, variance;
  static Running random(Random& random, int64_t channels, bool is_double);
  void define(const Normalized& batch, double momentum, Definition& results) const;
  // Makes copies for a kernel to update.
  void run(Random& random, bool is_double, Outcome& results, seq2tens_batch_norm& call) const;
};

// Values of valid rows get mean 0 and variance 1 in every channel; others become 0.
Normalized normalize(const std::vector<Number>& x, Channels shape, const Mask& mask, double eps) {
  Normalized result{std::vector<Number>(shape.size()), {}, {}};
  for (int64_t c = 0; c < shape.channels; ++c) {
    std::vector<int64_t> places;
    for (int64_t row = 0; row < shape.rows; ++row)
      for (int64_t j = 0; j < shape.inner && mask[row]; ++j) places.push_back(shape.place(row, c, j));
    const Number share = 1.0 / static_cast<double>(std::max<size_t>(1, places.size()));
    Sum sum, squares;
    for (int64_t place : places) sum.add(x[place], share);
    const Number mean = sum.close();
    for (int64_t place : places) {
      const Number centred = x[place] - mean;
      squares.add(centred * centred, share);
    }
    const Number variance = squares.close(), factor = inverse_root(variance + Number(eps));
    for (int64_t place : places) result.y[place] = (x[place] - mean) * factor;
    result.mean.push_back(mean);
    result.variance.push_back(variance);
  }
  return result;
}

Running Running::random(Random& random, int64_t channels, bool is_double) {
  return {Input::normal(random, channels, is_double), Input::normal(random, channels, is_double)};
}

void Running::define(const Normalized& batch, double momentum, Definition& results) const {
  for (int64_t c = 0; c < mean.count(); ++c) {
    const Number before = mean.value(c), spread = variance.value(c);
    results["running_mean"].push_back(before + Number(momentum) * (batch.mean[c] - before));
    results["running_variance"].push_back(spread + Number(momentum) * (batch.variance[c] - spread));
  }
}

void Running::run(Random& random, bool is_double, Outcome& results, seq2tens_batch_norm& call) const {
  if (!mean) return;
  const auto mean_copy = std::make_shared<Array>(random, mean.count(), is_double);
  const auto variance_copy = std::make_shared<Array>(random, variance.count(), is_double);
  mean.copy_to(*mean_copy);
  variance.copy_to(*variance_copy);
  results["running_mean"] = mean_copy;
  results["running_variance"] = variance_copy;
  call.running_mean = mean_copy->data();
  call.running_variance = variance_copy->data();
}

class BatchNorm : public Problem {
 public:
  explicit BatchNorm(Random& random) : Problem(random) {
    shape_ = {random.small(0, 350), random.small(random.chance(0.05) ? 0 : 1, 300), random.small(1, 40)};
    const double budget = random.budget(5e4);
    while (static_cast<double>(shape_.size()) > budget) {
      int64_t& size = random.chance(0.34) ? shape_.rows : random.chance(0.5) ? shape_.channels : shape_.inner;
      size = (size + 1) / 2;
    }
    eps_ = random.chance(0.5) ? 1e-3 : 1e-2;
    momentum_ = random.uniform();
    x_ = Input::normal(random, shape_.size(), is_double);
    if (random.chance(0.4)) mask_ = Mask::random(random, shape_.rows);
    if (random.chance(0.5)) weight_ = Input::normal(random, shape_.channels, is_double);
    if (random.chance(0.5)) bias_ = Input::normal(random, shape_.channels, is_double);
    if (random.chance(0.5)) running_ = Running::random(random, shape_.channels, is_double);
    if (random.chance(0.7)) dy_ = Input::normal(random, shape_.size(), is_double);
    wants_parameters_ = random.chance(0.7);
    wants_dx_ = !wants_parameters_ || random.chance(0.8);
    is_in_place_ = random.chance(0.3);
  }

  std::string describe() const override {
    return Description()("is_double", is_double)("threads", threads)("rows", shape_.rows)(
        "channels", shape_.channels)("inner", shape_.inner)("eps", eps_)(
        "momentum", momentum_)("mask", bool(mask_))("weight", bool(weight_))("bias", bool(bias_))(
        "running", bool(running_.mean))("dy", bool(dy_))(
        "dx", wants_dx_)("dweight and dbias", wants_parameters_)("dx in place of dy", is_in_place_)
        .text();
  }

  Definition define() override;
  Outcome run() override;

 private:
  std::vector<Number> ones_or(Input& input, double value) const {
    return input ? input.leaves() : std::vector<Number>(shape_.channels, Number(value));
  }

  Channels shape_;
  bool wants_parameters_, wants_dx_, is_in_place_;
  double eps_, momentum_;
  Input x_, weight_, bias_, dy_;
  Running running_;
  Mask mask_;
};

Definition BatchNorm::define() {
  tape.clear(bool(dy_));
  Definition results;
  const Normalized batch = normalize(x_.leaves(), shape_, mask_, eps_);
  const auto weight = ones_or(weight_, 1), bias = ones_or(bias_, 0);
  std::vector<Number> y(shape_.size());
  for (int64_t row = 0; row < shape_.rows; ++row)
    for (int64_t c = 0; c < shape_.channels && mask_[row]; ++c)
      for (int64_t j = 0; j < shape_.inner; ++j) {
        const int64_t place = shape_.place(row, c, j);
        y[place] = batch.y[place] * weight[c] + bias[c];
      }
  results["y"] = y;
  results["mean"] = batch.mean;
  results["variance"] = batch.variance;
  running_.define(batch, momentum_, results);
  if (!dy_) return results;
  seed(y, dy_);
  tape.propagate();
  if (tape.is_ambiguous) return results;
  if (wants_dx_) results["dx"] = x_.adjoints();
  if (wants_parameters_ && weight_) results["dweight"] = weight_.adjoints();
  if (wants_parameters_ && bias_) results["dbias"] = bias_.adjoints();
  return results;
}

Outcome BatchNorm::run() {
  Outcome results;
  seq2tens_batch_norm call = {};
  call.is_double = is_double;
  call.threads = threads;
  call.rows = shape_.rows;
  call.channels = shape_.channels;
  call.inner = shape_.inner;
  call.eps = eps_;
  call.momentum = momentum_;
  call.x = x_.data();
  call.mask = mask_.data();
  call.weight = weight_.data();
  call.bias = bias_.data();
  call.y = (results["y"] = room(shape_.size()))->data();
  call.mean = (results["mean"] = room(shape_.channels))->data();
  call.variance = (results["variance"] = room(shape_.channels))->data();
  running_.run(random, is_double, results, call);
  require(seq2tens_batch_norm_forward(&call));
  if (!dy_) return results;
  const auto dy = room(shape_.size()), dx = is_in_place_ ? dy : room(shape_.size());
  dy_.copy_to(*dy);
  seq2tens_batch_norm_gradients gradients = {&call, dy->data(), nullptr, nullptr, nullptr};
  if (wants_dx_) gradients.x = (results["dx"] = dx)->data();
  if (wants_parameters_) gradients.weight = (results["dweight"] = room(shape_.channels))->data();
  if (wants_parameters_) gradients.bias = (results["dbias"] = room(shape_.channels))->data();
  require(seq2tens_batch_norm_backward(&gradients));
  return results;
}

const Registered registered("batch_norm", [](Random& random) -> std::unique_ptr<Problem> {
  return std::make_unique<BatchNorm>(random);
});

}  // namespace
}  // namespace check
