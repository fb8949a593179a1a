// All windows of a sequence.
#include <algorithm>

#include "subwords.h"

namespace check {
namespace {

class Windows : public Problem {
 public:
  explicit Windows(Random& random) : Problem(random), forest_(Subwords::random_forest(random)), subwords_(forest_) {
    batch_ = random.integer(0, 5);
    length_ = 1 + random.small(0, 69);
    features_ = random.small(1, 40);
    width_ = random.small(1, 300);
    window_ = random.integer(1, length_);
    stride_ = random.chance(0.5) ? 1 : random.small(1, length_ + 3);
    const double budget = random.budget(5e4);
    while (work() > budget && features_ * width_ > 1) (width_ > 1 ? width_ : features_) /= 2;
    const double scale = 0.7 / std::sqrt(1.0 + double(features_));
    x_ = Input::normal(random, batch_ * length_ * features_, is_double);
    weight_ = Input::normal(random, forest_.components * features_ * width_, is_double, scale);
    if (random.chance(0.5)) bias_ = Input::normal(random, forest_.components * width_, is_double, 0.3);
    if (random.chance(0.4)) coefficients_ = Input::normal(random, random.small(1, 13), true);
    if (random.chance(0.4)) mask_ = Mask::random(random, batch_ * length_);
  }

  std::string describe() const override {
    return Description()("is_double", is_double)("threads", threads)("batch", batch_)("length", length_)(
        "features", features_)("width", width_)("window", window_)("stride", stride_)("states", forest_.states())(
        "levels", forest_.levels())("components", forest_.components)("longest", forest_.longest())(
        "words", subwords_.words())("lift_order", coefficients_.count())("bias", bool(bias_))("mask", bool(mask_))
        .text();
  }

  Definition define() override;
  Outcome run() override;

 private:
  double work() const {
    return double(batch_ * length_) * double(width_) *
           double(forest_.components * features_ + window_ / stride_ * forest_.states() + subwords_.words());
  }
  int64_t windows() const { return (length_ - window_ + stride_) / stride_; }
  std::vector<Number> letters(int64_t row, int64_t k, const std::vector<Number>& x) const;

  Forest forest_;
  Subwords subwords_;
  int64_t batch_, length_, features_, width_, window_, stride_;
  Input x_, weight_, bias_, coefficients_;
  Mask mask_;
};

// Inner products of a row with the vectors of one functional.
std::vector<Number> Windows::letters(int64_t row, int64_t k, const std::vector<Number>& x) const {
  std::vector<Number> letter;
  for (int64_t c = 0; c < forest_.components; ++c) {
    Sum sum;
    for (int64_t f = 0; f < features_; ++f)
      sum.add(x[row * features_ + f], Number(weight_.value((c * features_ + f) * width_ + k)));
    if (bias_) sum.add(Number(bias_.value(c * width_ + k)));
    letter.push_back(sum.close());
  }
  return letter;
}

Definition Windows::define() {
  tape.clear(false);
  const auto x = x_.leaves(), coefficients = coefficients_.leaves();
  const std::vector<Number> no_decay;
  const Step step{forest_, coefficients, no_decay};
  const int64_t levels = forest_.levels();
  std::vector<Number> out(batch_ * windows() * levels * width_);
  for (int64_t b = 0; b < batch_; ++b)
    for (int64_t k = 0; k < width_; ++k) {
      std::vector<std::vector<Number>> letter;
      for (int64_t i = 0; i < length_; ++i) letter.push_back(letters(b * length_ + i, k, x));
      for (int64_t w = 0; w < windows(); ++w) {
        std::vector<Number> state(forest_.states());
        for (int64_t i = w * stride_; i < w * stride_ + window_; ++i)
          for (int64_t s = forest_.states() - 1; s >= 0 && mask_[b * length_ + i]; --s)
            state[s] = step(state, letter[i], s);
        for (int64_t m = 0; m < levels; ++m)
          out[((b * windows() + w) * levels + m) * width_ + k] = state[forest_.output[m]];
      }
    }
  return {{"out", out}};
}

Outcome Windows::run() {
  const auto out = room(batch_ * windows() * forest_.levels() * width_);
  seq2tens_windows call = {};
  call.is_double = is_double;
  call.threads = threads;
  call.batch = batch_;
  call.length = length_;
  call.features = features_;
  call.components = forest_.components;
  call.width = width_;
  call.window = window_;
  call.stride = stride_;
  call.lift_order = coefficients_ ? coefficients_.count() : 1;
  call.subwords = subwords_.data();
  call.x = x_.data();
  call.weight = weight_.data();
  call.bias = bias_.data();
  call.coefficients = coefficients_.doubles();
  call.mask = mask_.data();
  call.out = out->data();
  require(seq2tens_slide_windows(&call));
  return {{"out", out}};
}

const Registered registered("windows", [](Random& random) -> std::unique_ptr<Problem> {
  return std::make_unique<Windows>(random);
});

}  // namespace
}  // namespace check
