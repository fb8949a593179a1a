// Pools of blocks of convolutions and of functionals.
#include <algorithm>

#include "check.h"

namespace check {
namespace {

constexpr int64_t kWidth = 32;

class Pooling : public Problem {
 public:
  explicit Pooling(Random& random) : Problem(random) {
    is_double = false;
    batch_ = random.integer(0, 4);
    length_ = 1 + random.small(0, 100);
    channels_ = random.small(1, 5);
    blocks_ = random.small(1, 3);
    taps_ = random.small(1, 7);
    chosen_ = random.small(1, 5);
    order_ = random.small(1, 5);
    groups_ = int64_t{1} << random.integer(0, 2);
    const double budget = random.budget(1e5) / kWidth;
    while (double(batch_ * length_ * blocks_) * double(taps_ * chosen_ + 8 * order_) > budget && length_ > 1)
      length_ /= 2;
    steepness_ = float(4 * random.uniform());
    contest_steepness_ = float(4 * random.uniform());
    paths_ = Input::normal(random, 2 * batch_ * length_ * channels_, false);
    weight_ = Input::normal(random, blocks_ * taps_ * chosen_ * kWidth, false, 0.5);
    gains_ = Input::normal(random, blocks_ * order_ * kWidth, false);
    const auto part = [&](int64_t) { return random.uniform(); };
    decay_ = Input::of(random, blocks_ * kWidth, false, part);
    threshold_ = Input::normal(random, blocks_ * kWidth, false);
    for (int64_t b = 0; b < batch_; ++b) lengths_.push_back(random.integer(1, length_));
    for (int64_t k = 0; k < blocks_; ++k) {
      source_.push_back(random.integer(0, 1));
      dilation_.push_back(random.small(1, 12));
    }
    for (int64_t k = 0; k < blocks_ * chosen_; ++k) channel_.push_back(random.integer(0, channels_ - 1));
    for (int64_t k = 0; k < blocks_ * order_ * kWidth; ++k) picks_.push_back(random.integer(0, kWidth - 1));
  }

  std::string describe() const override {
    return Description()("threads", threads)("batch", batch_)("length", length_)("channels", channels_)(
        "blocks", blocks_)("taps", taps_)("chosen", chosen_)("order", order_)("groups", groups_)
        .text();
  }

  Definition define() override;
  Outcome run() override;

 private:
  using Path = std::vector<std::vector<Number>>;  // a row for each step

  // A number after it has been rounded to float32.
  static Number rounded(Number number) {
    number.error += std::fabs(number.value);
    return number;
  }
  Number x(int64_t block, int64_t b, int64_t step, int64_t c) const {
    if (step < 0 || step >= lengths_[b]) return Number(0);
    const int64_t row = (source_[block] * batch_ + b) * length_ + step;
    return paths_.value(row * channels_ + channel_[block * chosen_ + c]);
  }
  Path convolve(int64_t block, int64_t b) const;
  std::vector<Path> functionals(int64_t block, const Path& responses) const;
  void pool(int64_t block, int64_t b, std::vector<Number>& out) const;

  template <class Term>  // mean of term(step) over a sequence
  static Number mean(int64_t steps, const Term& term) {
    Sum sum;
    for (int64_t i = 0; i < steps; ++i) sum.add(term(i), Number(1.0 / static_cast<double>(steps)));
    return sum.close();
  }
  Number ramp(const Number& value, double threshold) const {
    Number ramp = (value - Number(threshold)) * Number(steepness_) + Number(0.5);
    ramp.value = std::clamp(ramp.value, 0.0, 1.0);
    return ramp;
  }
  // The highest or lowest value of a step in the group of k.
  Number extreme(const std::vector<Number>& row, int64_t k, double sign) const {
    Number best = row[k];
    for (int64_t j = k % groups_; j < kWidth; j += groups_) {
      // if two values are equal up to rounding, a kernel may take either
      const double error = std::max(best.error, row[j].error);
      if (sign * row[j].value > sign * best.value) best = row[j];
      best.error = error;
    }
    return best;
  }

  int64_t batch_, length_, channels_, blocks_, taps_, chosen_, order_, groups_;
  double steepness_, contest_steepness_;
  Input paths_, weight_, gains_, decay_, threshold_;
  std::vector<int64_t> lengths_, source_, channel_, dilation_, picks_;
};

Pooling::Path Pooling::convolve(int64_t block, int64_t b) const {
  const int64_t reach = dilation_[block] * (taps_ - 1);
  Path path(lengths_[b], std::vector<Number>(kWidth));
  for (int64_t i = 0; i < lengths_[b]; ++i)
    for (int64_t k = 0; k < kWidth; ++k) {
      Sum sum;
      for (int64_t j = 0; j < taps_; ++j)
        for (int64_t c = 0; c < chosen_; ++c)
          sum.add(x(block, b, i + j * dilation_[block] - (reach - reach / 2), c),
                  weight_.value(((block * taps_ + j) * chosen_ + c) * kWidth + k));
      path[i][k] = rounded(sum.close());
    }
  return path;
}

std::vector<Pooling::Path> Pooling::functionals(int64_t block, const Path& responses) const {
  std::vector<Path> levels(order_, Path(responses.size(), std::vector<Number>(kWidth)));
  for (int64_t k = 0; k < kWidth; ++k) {
    std::vector<Number> state(order_ + 1);
    state[0] = Number(1);
    for (size_t i = 0; i < responses.size(); ++i)
      for (int64_t m = order_; m >= 1; --m) {
        const int64_t place = (block * order_ + m - 1) * kWidth + k;
        const double decay = decay_.value(block * kWidth + k);
        const Number factor = rounded(responses[i][picks_[place]] * Number(gains_.value(place)));
        const Number below = m > 1 ? Number(std::pow(decay, double(m - 1))) * state[m - 1] : state[0];
        state[m] = Number(std::pow(decay, double(m))) * state[m] + below * factor;
        levels[m - 1][i][k] = rounded(state[m]);
      }
  }
  return levels;
}

void Pooling::pool(int64_t block, int64_t b, std::vector<Number>& out) const {
  const int64_t steps = lengths_[b];
  const Path path = convolve(block, b);
  const auto at = [&](int64_t i, int64_t k) { return ramp(path[i][k], threshold_.value(block * kWidth + k)); };
  const auto add = [&](const auto& pool) {
    for (int64_t k = 0; k < kWidth; ++k) out.push_back(pool(k));
  };
  add([&](int64_t k) { return mean(steps, [&](int64_t i) { return at(i, k); }); });
  add([&](int64_t k) {
    Number run, longest;
    for (int64_t i = 0; i < steps; ++i) {
      run = (run + Number(1)) * at(i, k);
      longest = {std::max(longest.value, run.value), std::max(longest.error, run.error), -1};
    }
    return longest * Number(1.0 / static_cast<double>(steps));
  });
  add([&](int64_t k) {
    return mean(steps, [&](int64_t i) {
      const Number change = at(i, k) - at(std::max<int64_t>(i - 1, 0), k);
      return rectified(change) + rectified(Number(0) - change);
    });
  });
  const Number contest(contest_steepness_);
  add([&](int64_t k) {
    return mean(steps, [&](int64_t i) {
      const Number top = extreme(path[i], k, 1);
      return rectified(Number(1) - (top - path[i][k]) * contest) * top;
    });
  });
  add([&](int64_t k) {
    return mean(steps, [&](int64_t i) {
      return rectified(Number(1) - (path[i][k] - extreme(path[i], k, -1)) * contest);
    });
  });
  const std::vector<Path> levels = functionals(block, path);
  for (int64_t m = 1; m < order_; ++m)
    add([&](int64_t k) { return mean(steps, [&](int64_t i) { return ramp(levels[m][i][k], 0); }); });
  for (const Path& level : levels)
    add([&](int64_t k) { return mean(steps, [&](int64_t i) { return level[i][k] * level[i][k]; }); });
}

Definition Pooling::define() {
  tape.clear(false);
  Definition results{{"out", {}}};
  for (int64_t b = 0; b < batch_; ++b)
    for (int64_t block = 0; block < blocks_; ++block) pool(block, b, results["out"]);
  return results;
}

Outcome Pooling::run() {
  const auto floats = [](const Input& input) { return static_cast<const float*>(input.data()); };
  Outcome results;
  results["out"] = room(batch_ * blocks_ * (4 + 2 * order_) * kWidth);
  const seq2tens_pooled_blocks call = {
      threads, batch_, length_, channels_, blocks_, taps_, chosen_, order_, groups_, steepness_, contest_steepness_,
      floats(paths_), lengths_.data(), source_.data(), channel_.data(), dilation_.data(), floats(weight_),
      picks_.data(), floats(gains_), floats(decay_), floats(threshold_), static_cast<float*>(results["out"]->data())};
  require(seq2tens_pool_blocks(&call));
  return results;
}

const Registered registered("pooling", [](Random& random) -> std::unique_ptr<Problem> {
  return std::make_unique<Pooling>(random);
});

}  // namespace
}  // namespace check
