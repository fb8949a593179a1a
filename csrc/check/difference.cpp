// Differences of adjacent steps.
#include "check.h"

namespace check {
namespace {

class Difference : public Problem {
 public:
  explicit Difference(Random& random) : Problem(random) {
    batch_ = random.small(0, 5);
    length_ = random.small(0, 70);
    channels_ = random.small(1, 40);
    reverse_ = random.chance(0.5);
    x_ = Input::normal(random, batch_ * length_ * channels_, is_double);
  }

  std::string describe() const override {
    return Description()("is_double", is_double)("threads", threads)("batch", batch_)("length", length_)(
        "channels", channels_)("reverse", reverse_)
        .text();
  }

  Definition define() override {
    Definition results;
    for (int64_t b = 0; b < batch_; ++b)
      for (int64_t i = 0; i < length_; ++i)
        for (int64_t c = 0; c < channels_; ++c)
          results["y"].push_back(value(b, i, c) - value(b, i + (reverse_ ? 1 : -1), c));
    return results;
  }

  Outcome run() override {
    Outcome results;
    results["y"] = room(batch_ * length_ * channels_);
    const seq2tens_difference call = {is_double, threads,  batch_,    length_,
                                      channels_, reverse_, x_.data(), results["y"]->data()};
    require(seq2tens_difference_steps(&call));
    return results;
  }

 private:
  Number value(int64_t b, int64_t i, int64_t c) const {
    return Number(i < 0 || i >= length_ ? 0.0 : x_.value((b * length_ + i) * channels_ + c));
  }

  int64_t batch_, length_, channels_;
  bool reverse_;
  Input x_;
};

const Registered registered("difference", [](Random& random) -> std::unique_ptr<Problem> {
  return std::make_unique<Difference>(random);
});

}  // namespace
}  // namespace check
