// Convolution over time as matrix products. The steps that a kernel covers are adjacent in memory, so the rows of the
// left factor overlap, and only sequences that are padded or masked are copied. A task is a range of sequences, which
// only depends on shapes.
#include "sums.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {
namespace convolution_detail {
namespace {

template <class T>
struct Convolution {
  const seq2tens_convolution& call;
  int64_t length;  // steps of a sequence with its padding
  int64_t steps;   // steps of the result
  int64_t inner;   // numbers that a kernel covers
  int64_t worth;   // number of tasks that the multiplications justify

  explicit Convolution(const seq2tens_convolution& call)
      : call(call),
        length(call.before + call.length + call.after),
        steps(length - call.kernel + 1),
        inner(call.kernel * call.in_features) {
    constexpr int64_t kWorthATask = worth_a_task(1000000);  // multiplications, about 20 µs
    worth = call.batch * steps * inner * call.out_features / kWorthATask;
  }

  // Number of ranges of sequences. In the backward pass each has sums as large as the weight, so there are fewer.
  int64_t slices(int64_t rows_at_least) const {
    const int64_t most = call.batch * steps / worth_a_task(rows_at_least);
    return std::max<int64_t>(1, std::min({call.batch, worth, most, int64_t{16}}));
  }

  // Some sequences with their padding, and zeros at invalid steps.
  const T* x(Range sequences, Frame& frame) const {
    const int64_t n = call.in_features;
    const T* x = static_cast<const T*>(call.x) + sequences.begin * call.length * n;
    if (length == call.length && !call.mask) return x;
    T* copy = frame.take_zeros<T>(sequences.size() * length * n);
    for_each_valid(sequences, [&](int64_t from, int64_t to) { std::copy(x + from, x + from + n, copy + to); });
    return copy;
  }
  // Calls move(from, to) for all valid steps, with their places among the sequences without and with padding.
  template <class Move>
  void for_each_valid(Range sequences, const Move& move) const {
    const int64_t n = call.in_features;
    for (int64_t b = 0; b < sequences.size(); ++b)
      for (int64_t i = 0; i < call.length; ++i)
        if (!call.mask || call.mask[(sequences.begin + b) * call.length + i])
          move((b * call.length + i) * n, (b * length + call.before + i) * n);
  }

  // Packs the weight as right factor: [kernel, in, out].
  void pack_weight(T* packed) const {
    constexpr int64_t width = tile_columns<T>;
    static_assert(32 % width == 0, "callers round up to a multiple of 32");
    const int64_t n = call.in_features;
    const T* weight = static_cast<const T*>(call.weight);
    if (call.out_features % width) std::fill(packed, packed + packed_size<T>(call.out_features, inner), T(0));
    for (int64_t first = 0; first < call.out_features; first += width)
      for (int64_t c = 0; c < n; ++c)
        for (int64_t j = 0; j < call.kernel; ++j) {
          T* target = packed + first * inner + (j * n + c) * width;
          const T* source = weight + (first * n + c) * call.kernel + j;
          for (int64_t i = 0; i < std::min(width, call.out_features - first); ++i) target[i] = source[i * inner];
        }
  }
  const T* packed_weight(Frame& frame) const {
    if (call.packed) return static_cast<const T*>(call.packed);
    T* packed = frame.take<T>(packed_size<T>(call.out_features, inner));
    pack_weight(packed);
    return packed;
  }
  // The packed weight of the adjoint, with reversed kernel: [kernel, out, in].
  const T* pack_adjoint(Frame& frame) const {
    constexpr int64_t width = tile_columns<T>;
    const int64_t n = call.in_features, m = call.out_features, size = packed_size<T>(n, call.kernel * m);
    const T* weight = static_cast<const T*>(call.weight);
    T* packed = n % width ? frame.take_zeros<T>(size) : frame.take<T>(size);
    for (int64_t first = 0; first < n; first += width)
      for (int64_t o = 0; o < m; ++o)
        for (int64_t j = 0; j < call.kernel; ++j) {
          T* target = packed + (first * call.kernel + j * width) * m + o * width;
          const T* source = weight + (o * n + first) * call.kernel + call.kernel - 1 - j;
          for (int64_t i = 0; i < std::min(width, n - first); ++i) target[i] = source[i * call.kernel];
        }
    return packed;
  }

  void convolve(const T* packed, int64_t sequence) const {
    Frame frame;
    const int64_t m = call.out_features;
    T* y = static_cast<T*>(call.y) + sequence * steps * m;
    const T* rows = x(Range(sequence, sequence + 1), frame);
    multiply_packed<T>({steps, m, inner}, {rows, call.in_features}, packed, 0, {y, m});
    const T* bias = static_cast<const T*>(call.bias);
    for (int64_t i = 0; bias && i < steps; ++i)
      for (int64_t o = 0; o < m; ++o) y[i * m + o] += bias[o];
  }
};

template <class T>
void forward(const seq2tens_convolution& call) {
  Frame frame;
  const Convolution<T> convolution(call);
  const T* packed = convolution.packed_weight(frame);
  const int64_t slices = convolution.slices(1);
  for_each_task(slices, threads_worth(convolution.worth, call.threads), [&](int64_t task) {
    const Range sequences(call.batch, task, slices);
    for (int64_t b = sequences.begin; b < sequences.end; ++b) convolution.convolve(packed, b);
  });
}

// Gradients of the result of some sequences, one after the other, with zeros before, between and after them, as many
// steps as a kernel reaches. A kernel between two sequences covers parts of both, but only meets zeros.
template <class T>
struct Padded {
  int64_t gap;   // numbers that are 0 between two sequences
  int64_t rows;  // steps of x that get gradients
  T* data;

  Padded(const Convolution<T>& convolution, const T* dy, Range sequences, T* data)
      : gap((convolution.call.kernel - 1) * convolution.call.out_features),
        rows(sequences.size() * convolution.length),
        data(data) {
    const int64_t size = convolution.steps * convolution.call.out_features;
    std::fill(data, data + gap, T(0));
    for (int64_t b = sequences.begin; b < sequences.end; ++b) {
      data += gap;
      std::copy(dy + b * size, dy + (b + 1) * size, data);
      data += size;
      std::fill(data, data + gap, T(0));
    }
  }
};

// Gradients of weight and bias: sums over a slice, in doubles.
template <class T>
void sum_parameters(const Convolution<T>& convolution, const Padded<T>& dy, const T* x, ProductSum<T>& dweight,
                    double* dbias) {
  constexpr int64_t kRowsAtOnce = 256;
  Frame frame;
  const int64_t m = convolution.call.out_features, n = convolution.call.in_features;
  T* part = frame.take<T>(m);
  const int64_t rows = dy.rows - convolution.call.kernel + 1;  // later ones would read beyond the end of x
  for (int64_t i = 0; i < rows; i += kRowsAtOnce) {
    const int64_t count = std::min(kRowsAtOnce, rows - i);
    const T* drows = dy.data + dy.gap + i * m;
    dweight.add(x + i * n, drows, count);
    add_rows(drows, count, m, part, dbias);
  }
}

template <class T>
void backward_slice(const Convolution<T>& convolution, const seq2tens_convolution_gradients& given, Range sequences,
                    const T* adjoint, double* dweight, double* dbias) {
  constexpr int64_t kRows = 512;  // rows of sequences that are processed together
  Frame frame;
  const seq2tens_convolution& call = convolution.call;
  const int64_t n = call.in_features, m = call.out_features;
  const int64_t together = std::min(sequences.size(), std::max<int64_t>(1, kRows / convolution.length));
  T* padded = frame.take<T>((together * convolution.length + call.kernel - 1) * m);
  ProductSum<T> sum(dweight, {convolution.inner, m}, n, frame);
  for (int64_t b = sequences.begin; b < sequences.end; b += together) {
    Frame inside;
    const Range some(b, std::min(b + together, sequences.end));
    const Padded<T> dy(convolution, static_cast<const T*>(given.y), some, padded);
    sum_parameters(convolution, dy, convolution.x(some, inside), sum, dbias);
    if (!given.x) continue;
    T* dx = static_cast<T*>(given.x) + b * call.length * n;
    const bool is_copied = convolution.length != call.length || call.mask;
    T* all = is_copied ? inside.take<T>(dy.rows * n) : dx;
    multiply_packed<T>({dy.rows, n, call.kernel * m}, {padded, m}, adjoint, 0, {all, n});
    if (!is_copied) continue;
    std::fill(dx, dx + some.size() * call.length * n, T(0));
    convolution.for_each_valid(some, [&](int64_t to, int64_t from) { std::copy(all + from, all + from + n, dx + to); });
  }
  sum.finish();
}

inline double sum_of_slices(const double* parts, int64_t stride, int64_t slices) {
  double total = 0;
  for (int64_t s = 0; s < slices; ++s) total += parts[s * stride];
  return total;
}

template <class T>
void backward(const seq2tens_convolution_gradients& given) {
  Frame frame;
  const seq2tens_convolution& call = *given.call;
  const Convolution<T> convolution(call);
  const int64_t n = call.in_features, m = call.out_features, size = convolution.inner * m;
  const int64_t slices = convolution.slices(192);
  const T* adjoint = given.x ? convolution.pack_adjoint(frame) : nullptr;
  double* dweight = frame.take<double>(slices * size);
  double* dbias = frame.take_zeros<double>(slices * m);
  for_each_task(slices, threads_worth(2 * convolution.worth, call.threads), [&](int64_t task) {
    const Range sequences(call.batch, task, slices);
    backward_slice(convolution, given, sequences, adjoint, dweight + task * size, dbias + task * m);
  });
  constexpr int64_t kSumsWorthATask = worth_a_task(1 << 15);
  for_each_task(slices, threads_worth(slices * size / kSumsWorthATask, call.threads), [&](int64_t task) {
    const Range outputs(m, task, slices);
    for (int64_t c = 0; c < n; ++c)
      for (int64_t j = 0; j < call.kernel; ++j)
        for (int64_t o = outputs.begin; o < outputs.end; ++o)
          static_cast<T*>(given.weight)[(o * n + c) * call.kernel + j] =
              static_cast<T>(sum_of_slices(dweight + (j * n + c) * m + o, size, slices));
  });
  for (int64_t o = 0; given.bias && o < m; ++o)
    static_cast<T*>(given.bias)[o] = static_cast<T>(sum_of_slices(dbias + o, m, slices));
}

}  // namespace
}  // namespace convolution_detail

void convolution_pack(const seq2tens_convolution& call) {
  using convolution_detail::Convolution;
  call.is_double ? Convolution<double>(call).pack_weight(static_cast<double*>(call.packed))
                 : Convolution<float>(call).pack_weight(static_cast<float*>(call.packed));
}

void convolution_forward(const seq2tens_convolution& call) {
  call.is_double ? convolution_detail::forward<double>(call) : convolution_detail::forward<float>(call);
}

void convolution_backward(const seq2tens_convolution_gradients& given) {
  given.call->is_double ? convolution_detail::backward<double>(given) : convolution_detail::backward<float>(given);
}

}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
