// The LS2T recursion and its adjoint.
#include <algorithm>

#include "words.h"

namespace check {
namespace {

class Ls2t : public Problem {
 public:
  explicit Ls2t(Random& random) : Problem(random), forest_(Forest::random(random)), words_(forest_) {
    draw_sizes();
    draw_parameters();
    const int64_t rows = batch_ * length_;
    x_ = Input::normal(random, rows * features_, is_double);
    if (random.chance(0.3)) mask_ = Mask::random(random, rows);
    if (random.chance(0.3)) state_ = Input::normal(random, batch_ * forest_.states() * width_, is_double);
    wants_out_ = random.chance(0.7);
    wants_final_ = !wants_out_ || random.chance(0.5);
    wants_gradients_ = random.chance(0.6);
    wants_checkpoints_ = wants_gradients_ || random.chance(0.3);
    keeps_products_ = random.chance(0.5);
    if (!wants_gradients_) return;
    if (wants_out_) dout_ = Input::normal(random, rows * forest_.levels() * width_, is_double);
    if (random.chance(0.5)) dfinal_ = Input::normal(random, batch_ * forest_.states() * width_, is_double);
  }

  std::string describe() const override {
    return Description()("is_double", is_double)("threads", threads)("batch", batch_)("length", length_)(
        "features", features_)("width", width_)("states", forest_.states())("levels", forest_.levels())(
        "components", forest_.components)("longest", forest_.longest())("words", words_.data()->count)(
        "shared", words_.data()->shared)("reverse", reverse_)("block", block_)(
        "lift_order", coefficients_.count())("bias", bool(bias_))("powers", bool(powers_))("mask", bool(mask_))(
        "state", bool(state_))("out", wants_out_)("final", wants_final_)("checkpoints", wants_checkpoints_)("products", keeps_products_)(
        "gradients", wants_gradients_)("dout", bool(dout_))("dfinal", bool(dfinal_))
        .text();
  }

  Definition define() override;
  Outcome run() override;

 private:
  void draw_sizes() {
    batch_ = random.integer(0, 5);
    length_ = random.small(0, 70);
    features_ = random.small(random.chance(0.05) ? 0 : 1, 40);
    width_ = random.chance(0.2) ? 16 * random.small(1, 8) : random.small(1, 300);
    const double budget = random.budget(1e5);
    while (work() > budget && std::max({length_, features_, width_}) > 1) {
      int64_t& largest = random.chance(0.34) ? length_ : random.chance(0.5) ? features_ : width_;
      largest = (largest + 1) / 2;
    }
    reverse_ = random.chance(0.4);
    block_ = random.small(1, 80);
  }
  double work() const {
    return double(batch_) * double(length_) * double(width_) *
           double(forest_.components * features_ + 3 * forest_.states());
  }
  void draw_parameters() {
    const double scale = 0.7 / std::sqrt(1.0 + double(features_));
    weight_ = Input::normal(random, forest_.components * features_ * width_, is_double, scale);
    if (random.chance(0.5)) bias_ = Input::normal(random, forest_.components * width_, is_double, 0.3);
    if (!random.chance(0.35)) return;
    coefficients_ = Input::normal(random, random.small(1, 13), true);
    if (!random.chance(0.6)) return;
    std::vector<double> decay(width_);
    for (double& d : decay) d = random.uniform();
    powers_ = Input::of(random, (forest_.longest() + 1) * width_, true, [&](int64_t i) {
      return std::pow(decay[i % width_], static_cast<double>(i / width_));
    });
  }

  seq2tens_ls2t call() const {
    seq2tens_ls2t call = {};
    call.is_double = is_double;
    call.threads = threads;
    call.batch = batch_;
    call.length = length_;
    call.features = features_;
    call.width = width_;
    call.reverse = reverse_;
    call.lift_order = coefficients_.count();
    call.block = block_;
    call.words = words_.data();
    call.x = x_.data();
    call.weight = weight_.data();
    call.bias = bias_.data();
    call.coefficients = coefficients_.doubles();
    call.powers = powers_.doubles();
    call.mask = mask_.data();
    call.state = state_.data();
    return call;
  }
  int64_t blocks() const { return (length_ + block_ - 1) / block_; }

  Forest forest_;
  Words words_;
  int64_t batch_, length_, features_, width_, block_;
  bool reverse_;
  bool wants_out_, wants_final_, wants_gradients_, wants_checkpoints_, keeps_products_;
  Input x_, weight_, bias_, coefficients_, powers_, state_, dout_, dfinal_;
  Mask mask_;
};

Definition Ls2t::define() {
  tape.clear(wants_gradients_);
  const auto x = x_.leaves(), weight = weight_.leaves(), bias = bias_.leaves(), coefficients = coefficients_.leaves();
  const auto powers = powers_.leaves(), given = state_.leaves();
  const int64_t n = features_, d = width_, states = forest_.states(), levels = forest_.levels();
  std::vector<Number> out(batch_ * length_ * levels * d), final(batch_ * states * d);
  std::vector<Number> checkpoints(batch_ * blocks() * states * d);
  for (int64_t b = 0; b < batch_; ++b)
    for (int64_t k = 0; k < d; ++k) {
      std::vector<Number> state(states), letter(forest_.components), decay;
      for (int64_t s = 0; s < states && state_; ++s) state[s] = given[(b * states + s) * d + k];
      for (int64_t m = 0; m <= forest_.longest() && powers_; ++m) decay.push_back(powers[m * d + k]);
      const Step step{forest_, coefficients, decay};
      for (int64_t time = 0; time < length_; ++time) {
        const int64_t i = b * length_ + (reverse_ ? length_ - 1 - time : time);
        for (int64_t s = 0; s < states && time % block_ == 0; ++s)
          checkpoints[((b * blocks() + time / block_) * states + s) * d + k] = state[s];
        for (int64_t c = 0; c < forest_.components && mask_[i]; ++c) {
          Sum sum;
          for (int64_t f = 0; f < n; ++f) {
            sum.add(x[i * n + f], weight[(c * n + f) * d + k]);
          }
          if (bias_) sum.add(bias[c * d + k]);
          letter[c] = sum.close();
        }
        for (int64_t s = states - 1; s >= 0 && mask_[i]; --s) state[s] = step(state, letter, s);  // children first
        for (int64_t m = 0; m < levels; ++m) out[(i * levels + m) * d + k] = state[forest_.output[m]];
      }
      for (int64_t s = 0; s < states; ++s) final[(b * states + s) * d + k] = state[s];
    }
  Definition results;
  if (wants_out_) results["out"] = out;
  if (wants_final_) results["final"] = final;
  if (wants_checkpoints_) results["checkpoints"] = checkpoints;
  if (!wants_gradients_) return results;
  seed(out, dout_);
  seed(final, dfinal_);
  tape.propagate();
  results["dx"] = x_.adjoints();
  results["dweight"] = weight_.adjoints();
  if (bias_) results["dbias"] = bias_.adjoints();
  if (coefficients_) results["dcoefficients"] = coefficients_.adjoints();
  if (powers_) results["dpowers"] = powers_.adjoints();
  if (state_) results["dstate"] = state_.adjoints();
  return results;
}

Outcome Ls2t::run() {
  Outcome results;
  seq2tens_ls2t call = this->call();
  const int64_t rows = batch_ * length_, states = batch_ * forest_.states() * width_;
  const auto result = [&](const char* name, int64_t count, bool wide) {
    return (results[name] = room(count, wide || is_double))->data();
  };
  if (wants_out_) call.out = result("out", rows * forest_.levels() * width_, false);
  if (wants_final_) call.final = result("final", states, false);
  if (wants_checkpoints_) call.checkpoints = static_cast<double*>(result("checkpoints", states * blocks(), true));
  const auto products = room(rows * forest_.components * width_, is_double);  // in an internal order of the kernels
  if (keeps_products_) call.products = products->data();
  require(seq2tens_ls2t_forward(&call));
  if (!wants_gradients_) return results;
  seq2tens_ls2t_gradients gradients = {};
  gradients.call = &call;
  gradients.out = dout_.data();
  gradients.final = dfinal_.data();
  gradients.x = result("dx", x_.count(), false);
  gradients.weight = result("dweight", weight_.count(), false);
  if (bias_) gradients.bias = result("dbias", bias_.count(), false);
  if (coefficients_)
    gradients.coefficients = static_cast<double*>(result("dcoefficients", coefficients_.count(), true));
  if (powers_) gradients.powers = static_cast<double*>(result("dpowers", powers_.count(), true));
  if (state_) gradients.state = result("dstate", state_.count(), false);
  require(seq2tens_ls2t_backward(&gradients));
  return results;
}

const Registered registered("ls2t", [](Random& random) -> std::unique_ptr<Problem> {
  return std::make_unique<Ls2t>(random);
});

}  // namespace
}  // namespace check
