// Convolution over time and its adjoint.
#include "check.h"

namespace check {
namespace {

class Convolution : public Problem {
 public:
  explicit Convolution(Random& random) : Problem(random) {
    batch_ = random.small(0, 5);
    kernel_ = random.small(1, 9);
    before_ = random.chance(0.5) ? random.small(0, 8) : 0;
    after_ = random.chance(0.5) ? random.small(0, 8) : 0;
    length_ = kernel_ + random.small(0, 70);
    in_features_ = random.small(1, 40);
    out_features_ = random.small(1, 80);
    const double budget = random.budget(2e5);
    while (static_cast<double>(batch_ * length_ * kernel_ * in_features_ * out_features_) > budget) {
      for (int64_t* size : {&batch_, &in_features_, &out_features_, &kernel_}) *size = (*size + 1) / 2;
      length_ = kernel_ + (length_ - kernel_) / 2;
      if (length_ == 1) break;
    }
    if (random.chance(0.4)) mask_ = Mask::random(random, batch_ * length_);
    x_ = Input::normal(random, batch_ * length_ * in_features_, is_double);
    weight_ = Input::normal(random, out_features_ * in_features_ * kernel_, is_double);
    if (random.chance(0.5)) bias_ = Input::normal(random, out_features_, is_double);
    if (random.chance(0.7)) dy_ = Input::normal(random, batch_ * steps() * out_features_, is_double);
    wants_dx_ = random.chance(0.8);
    is_packed_ = random.chance(0.3);
  }

  std::string describe() const override {
    return Description()("is_double", is_double)("threads", threads)("batch", batch_)("length", length_)(
        "in_features", in_features_)("out_features", out_features_)("kernel", kernel_)("before", before_)("after", after_)("mask", bool(mask_))("bias", bool(bias_))(
        "dy", bool(dy_))("dx", wants_dx_)("packed", is_packed_)
        .text();
  }

  Definition define() override;
  Outcome run() override;

 private:
  int64_t steps() const { return before_ + length_ + after_ - kernel_ + 1; }
  bool is_valid(int64_t sequence, int64_t i) const {
    return i >= 0 && i < length_ && mask_[sequence * length_ + i];
  }

  int64_t batch_, length_, in_features_, out_features_, kernel_, before_, after_;
  bool wants_dx_, is_packed_;
  Mask mask_;
  Input x_, weight_, bias_, dy_;
  std::shared_ptr<Array> packed_;
};

Definition Convolution::define() {
  tape.clear(bool(dy_));
  Definition results;
  const auto x = x_.leaves(), weight = weight_.leaves();
  const auto bias = bias_ ? bias_.leaves() : std::vector<Number>(out_features_, Number(0.0));
  std::vector<Number> y;
  for (int64_t b = 0; b < batch_; ++b)
    for (int64_t i = 0; i < steps(); ++i)
      for (int64_t o = 0; o < out_features_; ++o) {
        Sum sum;
        for (int64_t c = 0; c < in_features_; ++c)
          for (int64_t j = 0; j < kernel_; ++j)
            if (is_valid(b, i + j - before_))
              sum.add(x[(b * length_ + i + j - before_) * in_features_ + c],
                      weight[(o * in_features_ + c) * kernel_ + j]);
        y.push_back(sum.close() + bias[o]);
      }
  results["y"] = y;
  if (!dy_) return results;
  seed(y, dy_);
  tape.propagate();
  if (wants_dx_) results["dx"] = x_.adjoints();
  results["dweight"] = weight_.adjoints();
  if (bias_) results["dbias"] = bias_.adjoints();
  return results;
}

Outcome Convolution::run() {
  Outcome results;
  seq2tens_convolution call = {is_double, threads, batch_, length_,      in_features_, out_features_,  kernel_,
                               before_,   after_,  mask_.data(), x_.data(),    weight_.data(), bias_.data(),
                               nullptr,   nullptr};
  if (is_packed_) {
    packed_ = room((out_features_ + 31) / 32 * 32 * in_features_ * kernel_);
    call.packed = packed_->data();
    require(seq2tens_convolution_pack(&call));
    call.weight = nullptr;
  }
  call.y = (results["y"] = room(batch_ * steps() * out_features_))->data();
  require(seq2tens_convolution_forward(&call));
  call.weight = weight_.data();
  if (!dy_) return results;
  seq2tens_convolution_gradients gradients = {&call, dy_.data(), nullptr, nullptr, nullptr};
  if (wants_dx_) gradients.x = (results["dx"] = room(batch_ * length_ * in_features_))->data();
  gradients.weight = (results["dweight"] = room(out_features_ * in_features_ * kernel_))->data();
  if (bias_) gradients.bias = (results["dbias"] = room(out_features_))->data();
  require(seq2tens_convolution_backward(&gradients));
  return results;
}

const Registered registered("convolution", [](Random& random) -> std::unique_ptr<Problem> {
  return std::make_unique<Convolution>(random);
});

}  // namespace
}  // namespace check
