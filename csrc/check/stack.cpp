// A stack of recursions with batch normalisation, with and without residual connections, and its adjoint.
#include <algorithm>

#include "batch_norm.h"
#include "words.h"

namespace check {
namespace {

struct Layer {
  Layer(Random& random, int64_t features, int64_t width, int64_t order, bool is_double)
      : features(features), width(width), order(order), words(Forest::chain(order)) {
    block = random.small(1, 80);
    eps = 1e-3;
    momentum = random.uniform();
    weight = Input::normal(random, order * features * width, is_double, 1 / std::sqrt(double(features)));
    if (random.chance(0.5)) bias = Input::normal(random, order * width, is_double, 0.3);
    if (random.chance(0.5)) running = Running::random(random, order, is_double);
  }
  int64_t features, width, order, block;
  bool return_sequences = true;
  double eps, momentum;
  Words words;
  Input weight, bias;
  Running running;
};

// A branch's linear map, if it has one, and normalisation.
struct Branch {
  Input matrix, shift, weight, bias;
  Running running;

  static Branch random(Random& random, int64_t features, int64_t channels, bool is_double) {
    Branch branch;
    if (features > 0) {
      branch.matrix = Input::normal(random, channels * features, is_double, 1 / std::sqrt(double(features)));
      branch.shift = Input::normal(random, channels, is_double);
    }
    branch.weight = Input::normal(random, channels, is_double);
    branch.bias = Input::normal(random, channels, is_double);
    if (random.chance(0.5)) branch.running = Running::random(random, channels, is_double);
    return branch;
  }
  std::vector<Number> define(const std::vector<Number>& rows, Channels shape, const Mask& mask, double eps,
                             double momentum, const std::string& name, Definition& results);
  void define_adjoints(const std::string& name, Definition& results) const;
  seq2tens_branch run(Random& random, bool is_double, const std::string& name, Outcome& results) const;
};

class Stack : public Problem {
 public:
  explicit Stack(Random& random) : Problem(random) {
    batch_ = random.integer(1, 5);
    length_ = 1 + random.small(0, 40);
    features_ = random.small(1, 20);
    has_residual_ = random.chance(0.5);
    is_trained_ = random.chance(0.7);
    wants_dinput_ = random.chance(0.5);
    if (random.chance(0.5)) mask_ = Mask::lengths(random, batch_, length_);
    draw_layers();
    x_ = Input::normal(random, batch_ * length_ * features_, is_double);
    if (has_residual_) draw_residual();
    if (is_trained_) dy_ = Input::normal(random, rows_out() * out_features(), is_double);
  }

  std::string describe() const override {
    Description text;
    text("is_double", is_double)("threads", threads)("batch", batch_)("length", length_)("features", features_)(
        "residual", has_residual_)("mask", bool(mask_))("trained", is_trained_)("input_features", input_features_);
    for (const auto& layer : layers_)
      text("| width", layer->width)("order", layer->order)("block", layer->block)("bias", bool(layer->bias))(
          "running", bool(layer->running.mean))("sequences", layer->return_sequences);
    return text.text();
  }

  Definition define() override;
  Outcome run() override;

 private:
  void draw_layers() {
    const double budget = random.budget(2e4) / static_cast<double>(batch_ * length_);
    const int64_t count = random.integer(1, 3);
    int64_t features = features_;
    for (int64_t i = 0; i < count; ++i) {
      int64_t order = random.small(1, count == 1 ? 12 : 4);
      int64_t width = random.chance(0.3) ? 16 * random.integer(1, 2) : random.small(1, 80);
      while (double(order * width * features) > budget && order * width > 1) (width > 1 ? width : order) /= 2;
      layers_.push_back(std::make_unique<Layer>(random, features, width, order, is_double));
      features = order * width;
    }
    layers_.back()->return_sequences = !has_residual_ && random.chance(0.5);
  }
  void draw_residual() {
    input_features_ = random.small(1, 20);
    scale_ = random.chance(0.5) ? std::sqrt(0.5) : 1;
    momentum_ = random.uniform();
    residual_x_ = Input::normal(random, batch_ * length_ * input_features_, is_double);
    main_ = Branch::random(random, 0, features_, is_double);
    input_ = Branch::random(random, input_features_, features_, is_double);
    output_ = Branch::random(random, features_, out_features(), is_double);
  }
  int64_t out_features() const { return layers_.back()->order * layers_.back()->width; }
  int64_t rows_out() const { return layers_.back()->return_sequences ? batch_ * length_ : batch_; }
  std::vector<Number> levels(Layer& layer, const std::vector<Number>& x) const;
  std::vector<Number> enter(const std::vector<Number>& x, Definition& results);
  std::vector<Number> pooled(const std::vector<Number>& x) const;
  void prepare_residual(seq2tens_residual& residual, seq2tens_branch* branches, Outcome& results);

  static constexpr double kEps = 1e-3;  // of residual branches
  int64_t batch_, length_, features_, input_features_ = 0;
  bool has_residual_, is_trained_, wants_dinput_;
  double scale_ = 1, momentum_ = 0;
  std::vector<std::unique_ptr<Layer>> layers_;
  Branch main_, input_, output_;
  Input x_, residual_x_, dy_;
  Mask mask_;
};

// Inner products of all rows with all rows of a matrix.
std::vector<Number> project(const std::vector<Number>& rows, const std::vector<Number>& matrix, int64_t features) {
  std::vector<Number> result;
  for (size_t i = 0; i < rows.size(); i += features)
    for (size_t j = 0; j < matrix.size(); j += features) {
      Sum sum;
      for (int64_t k = 0; k < features; ++k) sum.add(rows[i + k], matrix[j + k]);
      result.push_back(sum.close());
    }
  return result;
}

std::vector<Number> Branch::define(const std::vector<Number>& rows, Channels shape, const Mask& mask, double eps,
                                   double momentum, const std::string& name, Definition& results) {
  const auto scale = weight.leaves(), constant = bias.leaves();
  const auto x = matrix ? project(rows, matrix.leaves(), matrix.count() / shape.channels) : rows;
  const Normalized batch = normalize(x, shape, mask, eps);
  running.define(batch, shift, momentum, name, results);
  std::vector<Number> y(shape.size());
  for (int64_t row = 0; row < shape.rows; ++row)
    for (int64_t c = 0; c < shape.channels && mask[row]; ++c)
      y[row * shape.channels + c] = batch.y[row * shape.channels + c] * scale[c] + constant[c];
  return y;
}

void Branch::define_adjoints(const std::string& name, Definition& results) const {
  results[name + "_dweight"] = weight.adjoints();
  results[name + "_dbias"] = bias.adjoints();
  if (!matrix) return;
  results[name + "_dmatrix"] = matrix.adjoints();
  results[name + "_dshift"] = std::vector<Number>(shift.count());
}

seq2tens_branch Branch::run(Random& random, bool is_double, const std::string& name, Outcome& results) const {
  seq2tens_branch branch = {};
  branch.matrix = matrix.data();
  branch.shift = shift.data();
  branch.weight = weight.data();
  branch.bias = bias.data();
  running.run(random, is_double, name, results, branch.running_mean, branch.running_variance);
  const auto room = [&](const char* part, const Input& input) {
    return (results[name + part] = std::make_shared<Array>(random, input.count(), is_double))->data();
  };
  branch.dweight = room("_dweight", weight);
  branch.dbias = room("_dbias", bias);
  if (!matrix) return branch;
  branch.dmatrix = room("_dmatrix", matrix);
  branch.dshift = room("_dshift", shift);
  return branch;
}

// Levels of one chain over the differences of x: of every step, or after the last one.
std::vector<Number> Stack::levels(Layer& layer, const std::vector<Number>& x) const {
  const int64_t n = layer.features, d = layer.width, order = layer.order;
  const auto weight = layer.weight.leaves(), bias = layer.bias.leaves();
  std::vector<Number> result;
  for (int64_t b = 0; b < batch_; ++b) {
    std::vector<Number> state(order * d);
    for (int64_t i = b * length_; i < (b + 1) * length_; ++i) {
      for (int64_t m = order - 1; m >= 0 && mask_[i]; --m)  // the last first, it needs the others as they were
        for (int64_t k = 0; k < d; ++k) {
          Sum sum;
          for (int64_t f = 0; f < n; ++f)
            sum.add(i > b * length_ ? x[i * n + f] - x[(i - 1) * n + f] : x[i * n + f], weight[(m * n + f) * d + k]);
          if (layer.bias) sum.add(bias[m * d + k]);
          const Number letter = sum.close();
          state[m * d + k] = state[m * d + k] + (m > 0 ? letter * state[(m - 1) * d + k] : letter);
        }
      if (layer.return_sequences) result.insert(result.end(), state.begin(), state.end());
    }
    if (!layer.return_sequences) result.insert(result.end(), state.begin(), state.end());
  }
  return result;
}

// The sum of both branches that enters the stack.
std::vector<Number> Stack::enter(const std::vector<Number>& x, Definition& results) {
  const Channels shape{batch_ * length_, features_, 1};
  auto sum = main_.define(x, shape, mask_, kEps, momentum_, "main", results);
  const auto other = input_.define(residual_x_.leaves(), shape, mask_, kEps, momentum_, "input", results);
  for (size_t k = 0; k < sum.size(); ++k) sum[k] = (sum[k] + other[k]) * Number(scale_);
  return sum;
}

// Means over the steps that count.
std::vector<Number> Stack::pooled(const std::vector<Number>& x) const {
  std::vector<Number> result;
  for (int64_t b = 0; b < batch_; ++b) {
    int64_t count = 0;
    for (int64_t i = b * length_; i < (b + 1) * length_; ++i) count += mask_[i];
    for (int64_t k = 0; k < features_; ++k) {
      Sum sum;
      for (int64_t i = b * length_; i < b * length_ + count; ++i)
        sum.add(x[i * features_ + k], Number(1.0 / static_cast<double>(count)));
      result.push_back(sum.close());
    }
  }
  return result;
}

Definition Stack::define() {
  tape.clear(is_trained_);
  Definition results;
  const auto x = x_.leaves();
  auto y = has_residual_ ? enter(x, results) : x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = *layers_[i];
    const int64_t rows = layer.return_sequences ? batch_ * length_ : batch_;
    const Normalized batch = normalize(levels(layer, y), {rows, layer.order, layer.width},
                                       layer.return_sequences ? mask_ : Mask(), layer.eps);
    layer.running.define(batch, Input(), layer.momentum, "running" + std::to_string(i), results);
    y = batch.y;
  }
  if (has_residual_) {
    const auto other = output_.define(pooled(x), {batch_, out_features(), 1}, Mask(), kEps, momentum_, "output", results);
    for (size_t k = 0; k < y.size(); ++k) y[k] = (y[k] + other[k]) * Number(scale_);
  }
  results["y"] = y;
  if (!is_trained_) return results;
  seed(y, dy_);
  tape.propagate();
  results["dx"] = x_.adjoints();
  for (size_t i = 0; i < layers_.size(); ++i) {
    results["dweight" + std::to_string(i)] = layers_[i]->weight.adjoints();
    if (layers_[i]->bias) results["dbias" + std::to_string(i)] = layers_[i]->bias.adjoints();
  }
  if (!has_residual_) return results;
  if (wants_dinput_) results["dinput"] = residual_x_.adjoints();
  main_.define_adjoints("main", results);
  input_.define_adjoints("input", results);
  output_.define_adjoints("output", results);
  return results;
}

void Stack::prepare_residual(seq2tens_residual& residual, seq2tens_branch* branches, Outcome& results) {
  branches[0] = main_.run(random, is_double, "main", results);
  branches[1] = input_.run(random, is_double, "input", results);
  branches[2] = output_.run(random, is_double, "output", results);
  residual = {input_features_, out_features(), scale_,       kEps,         momentum_,
              residual_x_.data(), branches,    branches + 1, branches + 2};
}

Outcome Stack::run() {
  Outcome results;
  std::vector<seq2tens_stack_layer> layers;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = *layers_[i];
    seq2tens_stack_layer call = {};
    call.width = layer.width;
    call.return_sequences = layer.return_sequences;
    call.block = layer.block;
    call.eps = layer.eps;
    call.momentum = layer.momentum;
    call.words = layer.words.data();
    call.weight = layer.weight.data();
    call.bias = layer.bias.data();
    const std::string number = std::to_string(i);
    layer.running.run(random, is_double, "running" + number, results, call.running_mean, call.running_variance);
    call.dweight = (results["dweight" + number] = room(layer.weight.count()))->data();
    if (layer.bias) call.dbias = (results["dbias" + number] = room(layer.bias.count()))->data();
    layers.push_back(call);
  }
  seq2tens_residual residual = {};
  seq2tens_branch branches[3] = {};
  if (has_residual_) prepare_residual(residual, branches, results);
  int64_t size = 0;
  seq2tens_stack call = {is_double, threads,     batch_,  length_, features_,
                         static_cast<int64_t>(layers.size()), layers.data(), has_residual_ ? &residual : nullptr,
                         x_.data(), mask_.data(), nullptr, nullptr, &size};
  require(seq2tens_stack_forward(&call));
  const Memory memory(random, size / 8, 8);
  call.memory = memory.data();
  call.y = (results["y"] = room(rows_out() * out_features()))->data();
  require(seq2tens_stack_forward(&call));
  if (!is_trained_) return results;
  seq2tens_stack_gradients gradients = {&call, dy_.data(), nullptr, nullptr};
  gradients.x = (results["dx"] = room(x_.count()))->data();
  if (has_residual_ && wants_dinput_) gradients.input = (results["dinput"] = room(residual_x_.count()))->data();
  require(seq2tens_stack_backward(&gradients));
  return results;
}

const Registered registered("stack", [](Random& random) -> std::unique_ptr<Problem> {
  return std::make_unique<Stack>(random);
});

}  // namespace
}  // namespace check
