// A stack of LS2T layers, each followed by batch normalisation of its levels, with or without residual connections
// around it: one call in place of many small ones, which on short sequences take longer than the arithmetic.
#include "sums.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {

// Other operations that this one consists of.
void ls2t_forward(const seq2tens_ls2t&);
void ls2t_backward(const seq2tens_ls2t_gradients&);
void batch_norm_forward(const seq2tens_batch_norm&);
void batch_norm_backward(const seq2tens_batch_norm_gradients&);

namespace {

// Parts of the memory that the forward pass leaves for the backward one. Without memory it only counts bytes.
class Carver {
 public:
  explicit Carver(void* memory) : memory_(static_cast<char*>(memory)) {}
  template <class N>
  N* take(int64_t count) {
    const int64_t bytes = count * static_cast<int64_t>(sizeof(N)), size = round_up(bytes + kRedzone, 64);
    char* part = memory_ ? memory_ + used_ : nullptr;
    if (part) forbid(part + bytes, size - bytes);
    used_ += size;
    return reinterpret_cast<N*>(part);
  }
  int64_t used() const { return used_; }

 private:
  char* memory_;
  int64_t used_ = 0;
};

// Statistics of a batch, one of each per channel.
template <class T>
struct Statistics {
  T* mean;
  T* variance;
  Statistics(Carver& carver, int64_t channels)
      : mean(carver.take<T>(channels)), variance(carver.take<T>(channels)) {}
};

template <class T>
struct StackLayer {
  const seq2tens_stack& stack;
  const seq2tens_stack_layer& layer;
  int64_t features;  // of its input
  const T* x;
  bool is_last;
  T* levels;         // [batch(, length), levels, width]
  double* kept;
  T* products;
  Statistics<T> statistics;
  T* y;              // normalised levels

  StackLayer(const seq2tens_stack& stack, int64_t index, const T* x, int64_t features, Carver& carver)
      : stack(stack),
        layer(stack.layer[index]),
        features(features),
        x(x),
        is_last(index == stack.layers - 1),
        levels(carver.take<T>(rows() * size())),
        kept(carver.take<double>(stack.batch * blocks() * layer.words->states * layer.width)),
        products(carver.take<T>(stack.batch * stack.length * layer.words->components * layer.width)),
        statistics(carver, layer.words->levels),
        y(is_last ? static_cast<T*>(stack.y) : carver.take<T>(rows() * size())) {}

  int64_t rows() const { return layer.return_sequences ? stack.batch * stack.length : stack.batch; }
  int64_t size() const { return layer.words->levels * layer.width; }
  int64_t blocks() const { return (stack.length + layer.block - 1) / layer.block; }

  seq2tens_ls2t recursion() const {
    seq2tens_ls2t call = {};
    call.is_double = stack.is_double;
    call.threads = stack.threads;
    call.batch = stack.batch;
    call.length = stack.length;
    call.features = features;
    call.width = layer.width;
    call.difference = 1;
    call.block = layer.block;
    call.words = layer.words;
    call.x = x;
    call.weight = layer.weight;
    call.bias = layer.bias;
    call.mask = stack.mask;
    call.out = layer.return_sequences ? levels : nullptr;
    call.final = layer.return_sequences ? nullptr : levels;  // one chain: its states are the levels
    call.kept = kept;
    call.products = products;
    return call;
  }

  // What the last layer adds comes from the residual connection around the stack.
  seq2tens_batch_norm norm(const T* addend) const {
    seq2tens_batch_norm call = {};
    call.is_double = stack.is_double;
    call.threads = stack.threads;
    call.rows = rows();
    call.channels = layer.words->levels;
    call.inner = layer.width;
    call.eps = layer.eps;
    call.scale = is_last && stack.residual ? stack.residual->scale : 1;
    call.momentum = layer.momentum;
    call.x = levels;
    call.mask = layer.return_sequences ? stack.mask : nullptr;
    call.addend = addend;
    call.y = y;
    call.mean = statistics.mean;
    call.variance = statistics.variance;
    call.running_mean = layer.running_mean;
    call.running_variance = layer.running_variance;
    return call;
  }

  // Returns the derivatives by its input, given those by its output.
  T* backward(const T* dy, T* dx, Frame& frame) const {
    T* dlevels = frame.take<T>(rows() * size());
    const seq2tens_batch_norm norm = this->norm(nullptr);
    batch_norm_backward({&norm, dy, dlevels, nullptr, nullptr});
    const seq2tens_ls2t recursion = this->recursion();
    seq2tens_ls2t_gradients gradients = {};
    gradients.call = &recursion;
    gradients.out = layer.return_sequences ? dlevels : nullptr;
    gradients.final = layer.return_sequences ? nullptr : dlevels;
    gradients.x = dx;
    gradients.weight = layer.dweight;
    gradients.bias = layer.dbias;
    ls2t_backward(gradients);
    return dx;
  }
};

// How many steps of each sequence count; they come first.
int64_t valid_steps(const seq2tens_stack& stack, int64_t sequence) {
  int64_t count = stack.length;
  while (stack.mask && count > 0 && !stack.mask[sequence * stack.length + count - 1]) --count;
  return count;
}

// The residual connections: the sum that enters the stack, and what is added to its output.
template <class T>
struct Residual {
  const seq2tens_stack& stack;
  const seq2tens_residual& residual;
  int64_t rows, channels;
  const T* x;                  // [rows, channels] the features that the stack is for
  T* normalized;               // [rows, channels] features, normalised
  T* projected;                // [rows, channels] the input's projection
  T* sum;                      // [rows, channels] what enters the stack
  T* pooled;                   // [batch, channels] mean over time of the features
  T* pooled_projected;         // [batch, out features]
  T* pooled_normalized;        // [batch, out features]
  Statistics<T> main, input, output;

  Residual(const seq2tens_stack& stack, Carver& carver)
      : stack(stack),
        residual(*stack.residual),
        rows(stack.batch * stack.length),
        channels(stack.features),
        x(static_cast<const T*>(stack.x)),
        normalized(carver.take<T>(rows * channels)),
        projected(carver.take<T>(rows * channels)),
        sum(carver.take<T>(rows * channels)),
        pooled(carver.take<T>(stack.batch * channels)),
        pooled_projected(carver.take<T>(stack.batch * residual.out_features)),
        pooled_normalized(carver.take<T>(stack.batch * residual.out_features)),
        main(carver, channels),
        input(carver, channels),
        output(carver, residual.out_features) {}

  // Normalisation of a branch with `count` rows of `width` numbers.
  seq2tens_batch_norm norm(const seq2tens_branch& branch, const Statistics<T>& statistics, int64_t count,
                           int64_t width) const {
    seq2tens_batch_norm call = {};
    call.is_double = stack.is_double;
    call.threads = stack.threads;
    call.rows = count;
    call.channels = width;
    call.inner = 1;
    call.eps = residual.eps;
    call.scale = 1;
    call.momentum = residual.momentum;
    call.weight = branch.weight;
    call.bias = branch.bias;
    call.shift = branch.shift;
    call.mean = statistics.mean;
    call.variance = statistics.variance;
    call.running_mean = branch.running_mean;
    call.running_variance = branch.running_variance;
    return call;
  }
  seq2tens_batch_norm main_norm() const {
    seq2tens_batch_norm call = norm(*residual.main, main, rows, channels);
    call.mask = stack.mask;
    call.x = x;
    call.y = normalized;
    return call;
  }
  seq2tens_batch_norm input_norm() const {
    seq2tens_batch_norm call = norm(*residual.input, input, rows, channels);
    call.mask = stack.mask;
    call.scale = residual.scale;
    call.x = projected;
    call.addend = normalized;
    call.y = sum;
    return call;
  }
  seq2tens_batch_norm output_norm() const {
    seq2tens_batch_norm call = norm(*residual.output, output, stack.batch, residual.out_features);
    call.x = pooled_projected;
    call.y = pooled_normalized;
    return call;
  }

  int64_t tasks() const {
    constexpr int64_t kWorthATask = worth_a_task(1 << 15);
    const int64_t numbers = rows * (channels + residual.input_features);
    return std::max<int64_t>(1, std::min({stack.batch, numbers / kWorthATask, int64_t{16}}));
  }

  void forward() const {
    for_each_task(tasks(), stack.threads, [&](int64_t task) { project(Range(stack.batch, task, tasks())); });
    batch_norm_forward(main_norm());
    batch_norm_forward(input_norm());
    batch_norm_forward(output_norm());
  }

  // Both linear maps, and the mean over time that the second one takes.
  void project(Range sequences) const {
    Frame frame;
    double* sums = frame.take<double>(channels);
    for (int64_t b = sequences.begin; b < sequences.end; ++b) {
      const int64_t count = valid_steps(stack, b);
      std::fill(sums, sums + channels, 0.0);
      for (int64_t i = b * stack.length; i < b * stack.length + count; ++i)
        for (int64_t k = 0; k < channels; ++k) sums[k] += x[i * channels + k];
      for (int64_t k = 0; k < channels; ++k)
        pooled[b * channels + k] = static_cast<T>(sums[k] / static_cast<double>(std::max<int64_t>(1, count)));
    }
    const int64_t n = residual.input_features, first = sequences.begin * stack.length;
    multiply<T>({sequences.size() * stack.length, channels, n},
                {static_cast<const T*>(residual.x) + first * n, n},
                {static_cast<const T*>(residual.input->matrix), n, Transpose::kYes}, 0,
                {projected + first * channels, channels});
    multiply<T>({sequences.size(), residual.out_features, channels}, {pooled + sequences.begin * channels, channels},
                {static_cast<const T*>(residual.output->matrix), channels, Transpose::kYes}, 0,
                {pooled_projected + sequences.begin * residual.out_features, residual.out_features});
  }

  // Derivatives from those by the sum and by the output of the whole.
  void backward(const T* dsum, const T* dy, T* dx, T* dinput) const {
    Frame frame;
    T* dprojected = frame.take<T>(rows * channels);
    T* doutput = frame.take<T>(stack.batch * residual.out_features);
    normalize_back(main_norm(), *residual.main, dsum, dx);
    normalize_back(input_norm(), *residual.input, dsum, dprojected);
    normalize_back(output_norm(), *residual.output, dy, doutput);
    for_each_task(tasks(), stack.threads,
                  [&](int64_t task) { spread_mean(Range(stack.batch, task, tasks()), doutput, dx); });
    sum_products(*residual.input, dprojected, static_cast<const T*>(residual.x), rows,
                 {channels, residual.input_features});
    sum_products(*residual.output, doutput, pooled, stack.batch, {residual.out_features, channels});
    const int64_t n = residual.input_features;
    if (dinput)
      multiply<T>({rows, n, channels}, {dprojected, channels}, {static_cast<const T*>(residual.input->matrix), n}, 0,
                  {dinput, n});
  }

  // A branch was scaled with the sum that it is part of.
  void normalize_back(seq2tens_batch_norm call, const seq2tens_branch& branch, const T* dy, T* dx) const {
    call.scale = residual.scale;
    batch_norm_backward({&call, dy, dx, branch.dweight, branch.dbias});
  }

  // Adds what comes by way of the mean over time.
  void spread_mean(Range sequences, const T* doutput, T* dx) const {
    Frame frame;
    T* dpooled = frame.take<T>(sequences.size() * channels);
    const int64_t n = residual.out_features;
    multiply<T>({sequences.size(), channels, n}, {doutput + sequences.begin * n, n},
                {static_cast<const T*>(residual.output->matrix), channels}, 0, {dpooled, channels});
    for (int64_t b = sequences.begin; b < sequences.end; ++b) {
      const int64_t count = valid_steps(stack, b);
      const T share = static_cast<T>(1.0 / static_cast<double>(std::max<int64_t>(1, count)));
      const T* mean = dpooled + (b - sequences.begin) * channels;
      for (int64_t i = b * stack.length; i < b * stack.length + count; ++i)
        for (int64_t k = 0; k < channels; ++k) dx[i * channels + k] += mean[k] * share;
    }
  }

  struct MatrixSize {
    int64_t rows, columns;
  };

  // Derivatives by a branch's matrix, summed over `count` rows; normalisation takes the shift away again.
  void sum_products(const seq2tens_branch& branch, const T* drows, const T* rows, int64_t count,
                    MatrixSize size) const {
    constexpr int64_t kRowsAtOnce = 256;
    Frame frame;
    const int64_t numbers = size.rows * size.columns;
    double* total = frame.take<double>(numbers);
    ProductSum<T> sum(total, size.rows, size.columns, frame);
    for (int64_t i = 0; i < count; i += kRowsAtOnce)
      sum.add(drows + i * size.rows, rows + i * size.columns, std::min(kRowsAtOnce, count - i));
    sum.finish();
    T* dmatrix = static_cast<T*>(branch.dmatrix);
    for (int64_t k = 0; k < numbers; ++k) dmatrix[k] = static_cast<T>(total[k]);
    std::fill(static_cast<T*>(branch.dshift), static_cast<T*>(branch.dshift) + size.rows, T(0));
  }
};

// Everything of a call in its place. `layers` is room for as many as there are.
template <class T>
struct Stack {
  const seq2tens_stack& stack;
  Residual<T>* residual;
  StackLayer<T>* layers;

  Stack(const seq2tens_stack& stack, Carver carver, Frame& frame)
      : stack(stack),
        residual(stack.residual ? new (frame.take<Residual<T>>(1)) Residual<T>(stack, carver) : nullptr),
        layers(frame.take<StackLayer<T>>(stack.layers)) {
    const T* x = residual ? residual->sum : static_cast<const T*>(stack.x);
    int64_t features = stack.features;
    for (int64_t i = 0; i < stack.layers; ++i) {
      const StackLayer<T>* layer = new (layers + i) StackLayer<T>(stack, i, x, features, carver);
      x = layer->y;
      features = layer->size();
    }
    if (stack.memory_size) *stack.memory_size = carver.used();
  }

  void forward() const {
    if (residual) residual->forward();
    for (int64_t i = 0; i < stack.layers; ++i) {
      ls2t_forward(layers[i].recursion());
      batch_norm_forward(layers[i].norm(residual && layers[i].is_last ? residual->pooled_normalized : nullptr));
    }
  }

  void backward(const seq2tens_stack_gradients& given, Frame& frame) const {
    const T* dy = static_cast<const T*>(given.y);
    for (int64_t i = stack.layers - 1; i >= 0; --i) {
      const bool is_first = i == 0 && !residual;
      const int64_t size = stack.batch * stack.length * layers[i].features;
      dy = layers[i].backward(dy, is_first ? static_cast<T*>(given.x) : frame.take<T>(size), frame);
    }
    if (residual)
      residual->backward(dy, static_cast<const T*>(given.y), static_cast<T*>(given.x), static_cast<T*>(given.input));
  }
};

template <class T>
void run_stack(const seq2tens_stack& stack) {
  Frame frame;
  const Stack<T> whole(stack, Carver(stack.memory), frame);
  if (stack.memory) whole.forward();
}

template <class T>
void run_stack_backward(const seq2tens_stack_gradients& given) {
  Frame frame;
  Stack<T>(*given.call, Carver(given.call->memory), frame).backward(given, frame);
}

}  // namespace

void stack_forward(const seq2tens_stack& call) { call.is_double ? run_stack<double>(call) : run_stack<float>(call); }

void stack_backward(const seq2tens_stack_gradients& given) {
  given.call->is_double ? run_stack_backward<double>(given) : run_stack_backward<float>(given);
}

}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
