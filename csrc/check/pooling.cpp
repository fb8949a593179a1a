// Pooling along time: of paths around thresholds, and of contests within groups.
#include <algorithm>

#include "check.h"

namespace check {
namespace {

class Pooling : public Problem {
 public:
  explicit Pooling(Random& random) : Problem(random) {
    batch_ = random.integer(0, 5);
    length_ = 1 + random.small(0, 150);
    groups_ = random.chance(0.5) ? int64_t{1} << random.integer(0, 4) : random.small(1, 20);
    width_ = groups_ * (random.chance(0.5) ? int64_t{1} << random.integer(0, 5) : random.small(1, 20));
    const double budget = random.budget(1e5);
    while (double(batch_ * length_) * double(width_) > budget && length_ > 1) length_ /= 2;
    steepness_ = 4 * random.uniform();
    path_ = Input::normal(random, batch_ * length_ * width_, is_double);
    threshold_ = Input::normal(random, width_, is_double);
    for (int64_t b = 0; b < batch_; ++b) lengths_.push_back(random.integer(1, length_));
  }

  std::string describe() const override {
    return Description()("is_double", is_double)("threads", threads)("batch", batch_)("length", length_)(
        "width", width_)("groups", groups_)("steepness", steepness_)
        .text();
  }

  Definition define() override;
  Outcome run() override;

 private:
  Number value(int64_t b, int64_t i, int64_t k) const { return path_.value((b * length_ + i) * width_ + k); }
  // With a rounding error, because kernels round the steepness to their precision.
  Number steepness() const { return {steepness_, steepness_, -1}; }
  template <class Term>  // mean of term(step) over a sequence
  Number mean(int64_t b, const Term& term) const {
    Sum sum;
    for (int64_t i = 0; i < lengths_[b]; ++i) sum.add(term(i), Number(1.0 / static_cast<double>(lengths_[b])));
    return sum.close();
  }
  Number ramp(int64_t b, int64_t i, int64_t k) const {
    Number ramp = (value(b, i, k) - threshold_.value(k)) * steepness() + Number(0.5);
    ramp.value = std::clamp(ramp.value, 0.0, 1.0);
    return ramp;
  }
  Number longest_stretch(int64_t b, int64_t k) const {
    Number run, longest;
    for (int64_t i = 0; i < lengths_[b]; ++i) {
      run = (run + Number(1)) * ramp(b, i, k);
      // if two values are equal up to rounding, a kernel may take either
      longest = {std::max(longest.value, run.value), std::max(longest.error, run.error), -1};
    }
    return longest;
  }
  // The highest or lowest value in the group of k.
  Number extreme(int64_t b, int64_t i, int64_t k, double sign) const {
    double best = value(b, i, k).value;
    for (int64_t j = k % groups_; j < width_; j += groups_)
      if (sign * value(b, i, j).value > sign * best) best = value(b, i, j).value;
    return best;
  }

  int64_t batch_, length_, groups_, width_;
  double steepness_;
  Input path_, threshold_;
  std::vector<int64_t> lengths_;
};

Definition Pooling::define() {
  tape.clear(false);
  Definition results{{"share", {}}, {"stretch", {}}, {"changes", {}}, {"wins", {}}, {"losses", {}}};
  for (int64_t b = 0; b < batch_; ++b)
    for (int64_t k = 0; k < width_; ++k) {
      results["share"].push_back(mean(b, [&](int64_t i) { return ramp(b, i, k); }));
      results["stretch"].push_back(longest_stretch(b, k) * Number(1.0 / static_cast<double>(lengths_[b])));
      results["changes"].push_back(mean(b, [&](int64_t i) {
        const Number change = ramp(b, i, k) - ramp(b, std::max<int64_t>(i - 1, 0), k);
        return rectified(change) + rectified(Number(0) - change);
      }));
      results["wins"].push_back(mean(b, [&](int64_t i) {
        const Number top = extreme(b, i, k, 1);
        return rectified(Number(1) - (top - value(b, i, k)) * steepness()) * top;
      }));
      results["losses"].push_back(mean(b, [&](int64_t i) {
        return rectified(Number(1) - (value(b, i, k) - extreme(b, i, k, -1)) * steepness());
      }));
    }
  return results;
}

Outcome Pooling::run() {
  Outcome results;
  for (const char* name : {"share", "stretch", "changes", "wins", "losses"}) results[name] = room(batch_ * width_);
  const seq2tens_path_pool pool = {is_double, threads, batch_, length_, width_, steepness_, path_.data(),
                                   lengths_.data(), threshold_.data(), results["share"]->data(),
                                   results["stretch"]->data(), results["changes"]->data()};
  require(seq2tens_pool_path(&pool));
  const seq2tens_contest_pool contest = {is_double, threads, batch_, length_, width_, groups_, steepness_,
                                         path_.data(), lengths_.data(), results["wins"]->data(),
                                         results["losses"]->data()};
  require(seq2tens_pool_contest(&contest));
  return results;
}

const Registered registered("pooling", [](Random& random) -> std::unique_ptr<Problem> {
  return std::make_unique<Pooling>(random);
});

}  // namespace
}  // namespace check
