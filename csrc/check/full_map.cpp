// The full map of a power lift, and its adjoint.
#include <algorithm>

#include "check.h"

namespace check {
namespace {

class FullMap : public Problem {
 public:
  explicit FullMap(Random& random) : Problem(random) {
    batch_ = random.integer(0, random.chance(0.3) ? 20 : 5);
    increments_ = random.chance(0.5);
    points_ = increments_ + random.small(0, 70);
    dim_ = random.small(1, 40);
    order_ = random.integer(1, 12);
    const double budget = random.budget(3e4);
    while (work() > budget && (dim_ > 1 || order_ > 1 || points_ > increments_)) shrink();
    sequences_ = random.chance(0.3);
    lanes_ = !sequences_ && random.chance(0.5) ? 8 : 1;
    block_ = random.small(1, 80);
    x_ = Input::normal(random, batch_ * points_ * dim_, is_double, 0.5);
    coefficients_ = Input::normal(random, random.small(1, 13), true);
    wants_coefficients_ = random.chance(0.5);
    wants_checkpoints_ = random.chance(0.6);
    const int64_t rows = sequences_ ? batch_ * steps() : batch_;
    if (wants_checkpoints_) dout_ = Input::normal(random, rows * coordinates(order_), is_double);
  }

  std::string describe() const override {
    return Description()("is_double", is_double)("threads", threads)("batch", batch_)("points", points_)("dim", dim_)(
        "order", order_)("lift_order", coefficients_.count())("increments", increments_)("sequences", sequences_)(
        "lanes", lanes_)("block", block_)("gradients", bool(dout_))(
        "dcoefficients", wants_coefficients_)
        .text();
  }

  Definition define() override;
  Outcome run() override;

 private:
  void shrink() {
    if (order_ > 1 && random.chance(0.5))
      --order_;
    else if (random.chance(0.6))
      dim_ = (dim_ + 1) / 2;
    else
      points_ = std::max<int64_t>(increments_, points_ / 2);
  }
  double work() const {
    double top = 1;
    for (int64_t m = 0; m < order_; ++m) top *= double(dim_);
    return double(batch_ + 1) * double(points_ + 1) * 2 * top * double(order_);
  }
  // The number of coordinates in all levels up to `order`.
  int64_t coordinates(int64_t order) const {
    int64_t total = 0;
    for (int64_t m = 0, count = 1; m <= order; ++m, count *= dim_) total += count;
    return total;
  }
  int64_t steps() const { return points_ - increments_; }
  int64_t groups() const { return (batch_ + lanes_ - 1) / lanes_; }
  int64_t blocks() const { return (steps() + block_ - 1) / block_; }

  int64_t batch_, points_, dim_, order_, lanes_, block_;
  bool increments_, sequences_, wants_coefficients_, wants_checkpoints_;
  Input x_, coefficients_, dout_;
};

using Level = std::vector<Number>;

// The outer product, flattened.
Level tensor_product(const Level& a, const Level& b) {
  Level result;
  for (const Number& left : a)
    for (const Number& right : b) result.push_back(left * right);
  return result;
}

Definition FullMap::define() {
  tape.clear(bool(dout_));
  const auto x = x_.leaves(), coefficients = coefficients_.leaves();
  std::vector<Number> out;
  const auto write = [&out](const std::vector<Level>& state) {
    for (const Level& level : state) out.insert(out.end(), level.begin(), level.end());
  };
  for (int64_t b = 0; b < batch_; ++b) {
    std::vector<Level> state{{Number(1)}};
    for (int64_t m = 1; m <= order_; ++m) state.emplace_back(coordinates(m) - coordinates(m - 1));
    for (int64_t i = 0; i < steps(); ++i) {
      Level step;
      for (int64_t k = 0; k < dim_; ++k) {
        const int64_t place = (b * points_ + i) * dim_ + k;
        step.push_back(increments_ ? x[place + dim_] - x[place] : x[place]);
      }
      for (int64_t m = order_; m >= 1; --m) {  // the highest first, because it needs the old values of the others
        Level power{Number(1)};
        for (int64_t j = 1; j <= std::min(m, coefficients_.count()); ++j) {
          power = tensor_product(power, step);
          const Level term = tensor_product(state[m - j], power);
          for (size_t k = 0; k < term.size(); ++k) state[m][k] = state[m][k] + coefficients[j - 1] * term[k];
        }
      }
      if (sequences_) write(state);
    }
    if (!sequences_) write(state);
  }
  Definition results{{"out", out}};
  if (!dout_) return results;
  seed(out, dout_);
  tape.propagate();
  results["dx"] = x_.adjoints();
  if (wants_coefficients_) results["dcoefficients"] = coefficients_.adjoints();
  return results;
}

Outcome FullMap::run() {
  Outcome results;
  results["out"] = room((sequences_ ? batch_ * steps() : batch_) * coordinates(order_));
  const auto checkpoints = room(groups() * blocks() * coordinates(order_ - 1) * lanes_, true);
  const seq2tens_full_map call = {is_double, threads, batch_, points_, dim_, order_, coefficients_.count(),
                                  increments_, sequences_, lanes_, block_, x_.data(),
                                  coefficients_.doubles(), results["out"]->data(),
                                  wants_checkpoints_ ? static_cast<double*>(checkpoints->data()) : nullptr};
  require(seq2tens_full_map_forward(&call));
  if (!dout_) return results;
  seq2tens_full_map_gradients gradients = {&call, dout_.data(), nullptr, nullptr};
  gradients.x = (results["dx"] = room(x_.count()))->data();
  if (wants_coefficients_) {
    results["dcoefficients"] = room(coefficients_.count(), true);
    gradients.coefficients = static_cast<double*>(results["dcoefficients"]->data());
  }
  require(seq2tens_full_map_backward(&gradients));
  return results;
}

const Registered registered("full_map", [](Random& random) -> std::unique_ptr<Problem> {
  return std::make_unique<FullMap>(random);
});

}  // namespace
}  // namespace check
