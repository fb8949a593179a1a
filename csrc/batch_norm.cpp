// Batch normalisation over the rows that count. A task is a range of channels, each of `inner` neighbouring columns.
// A sum belongs to one column and goes from row to row in doubles, so results do not depend on threads or on how many
// lanes a vector has.
#include <algorithm>
#include <cmath>

#include "parallel.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {
namespace batch_norm_detail {
namespace {

// Loops over columns are written once, for whole vectors and for what is left over.
template <class T>
struct VectorLane {
  static constexpr int64_t lanes = Vectors<T>::lanes;
  static Vector<T> read(const T* p) { return load(p); }
  static void write(T* p, Vector<T> v) { store(p, v); }
};
template <class T>
struct SingleLane {
  static constexpr int64_t lanes = 1;
  static T read(const T* p) { return *p; }
  static void write(T* p, T v) { *p = v; }
};
// The same for sums in doubles.
struct WideVectorLane {
  static constexpr int64_t lanes = kWideLanes;
  typedef Wide Value;
  template <class T>
  static Wide read(const T* p) { return load_wide(p); }
  static void write(double* p, Wide v) { store_wide(p, v); }
};
struct WideSingleLane {
  static constexpr int64_t lanes = 1;
  typedef double Value;
  template <class T>
  static double read(const T* p) { return *p; }
  static void write(double* p, double v) { *p = v; }
};

// Calls each(lane, column) for columns 0, lanes, 2 lanes, …
template <class T, class Each>
void for_each_column(int64_t columns, const Each& each) {
  int64_t q = 0;
  for (; q + VectorLane<T>::lanes <= columns; q += VectorLane<T>::lanes) each(VectorLane<T>{}, q);
  for (; q < columns; ++q) each(SingleLane<T>{}, q);
}

// Places, in an array, of the first of our columns in some rows that count.
struct Places {
  static constexpr int64_t kMost = 64;  // as many rows as a core's first cache holds for some hundred columns
  int64_t count;
  int64_t place[kMost];
};

template <class Lane, int K, int U, class Term>
void add_tile(const Places& places, int64_t columns, int64_t q, double* sums, const Term& term) {
  typename Lane::Value sum[K][U];
  for (int k = 0; k < K; ++k)
    for (int u = 0; u < U; ++u) sum[k][u] = Lane::read(sums + k * columns + q + u * Lane::lanes);
  for (int64_t i = 0; i < places.count; ++i)
    for (int u = 0; u < U; ++u) {
      const auto terms = term(Lane{}, places.place[i], q + u * Lane::lanes);
      for (int k = 0; k < K; ++k) sum[k][u] += terms.value[k];
    }
  for (int k = 0; k < K; ++k)
    for (int u = 0; u < U; ++u) Lane::write(sums + k * columns + q + u * Lane::lanes, sum[k][u]);
}

template <class Value, int K>
struct Terms {
  Value value[K];
};

// The last columns, fewer than U + 1 of them, side by side.
template <int K, int U, class Term>
void add_rest(const Places& places, int64_t columns, int64_t q, double* sums, const Term& term) {
  if (columns - q == U) return add_tile<WideSingleLane, K, U>(places, columns, q, sums, term);
  if constexpr (U > 1) add_rest<K, U - 1>(places, columns, q, sums, term);
}

// Adds term(lane, place of the row, column), K numbers, to K sums of each column: `sums` is [K, columns].
template <int K, class Term>
void add_terms(const Places& places, int64_t columns, double* sums, const Term& term) {
  constexpr int U = 4;
  int64_t q = 0;
  for (; q + U * kWideLanes <= columns; q += U * kWideLanes)
    add_tile<WideVectorLane, K, U>(places, columns, q, sums, term);
  for (; q + kWideLanes <= columns; q += kWideLanes)
    add_tile<WideVectorLane, K, 1>(places, columns, q, sums, term);
  add_rest<K, kWideLanes - 1>(places, columns, q, sums, term);
}

// How channels are cut into tasks: by shapes only, at cache lines of float32 where channels are columns.
struct Shares {
  int64_t unit;   // channels
  int64_t units;
  int64_t tasks;
};

Shares share_out(const seq2tens_batch_norm& call) {
  constexpr int64_t kWorthATask = worth_a_task(1 << 14);  // numbers, some 10 µs
  const int64_t unit = (kFunctionalLanes + call.inner - 1) / std::max<int64_t>(1, call.inner);
  const int64_t units = (call.channels + unit - 1) / std::max<int64_t>(1, unit);
  const int64_t worth = call.rows * call.channels * call.inner / kWorthATask;
  return {unit, units, std::max<int64_t>(1, std::min({units, worth, int64_t{16}}))};
}

// One over the number of values of a channel that count.
double share_of_value(const seq2tens_batch_norm& call) {
  int64_t count = call.rows;
  if (call.mask) count = call.rows - std::count(call.mask, call.mask + call.rows, uint8_t{0});
  return 1.0 / static_cast<double>(std::max<int64_t>(1, count) * call.inner);
}

// The channels of a task.
template <class T>
struct Task {
  const seq2tens_batch_norm& call;
  double share;        // of a value in a mean
  int64_t first, last; // channels
  int64_t columns;     // of them
  int64_t start;       // where their columns begin in a row
  int64_t stride;      // from row to row

  Task(const seq2tens_batch_norm& call, const Shares& shares, double share, int64_t index) : call(call), share(share) {
    const Range units(shares.units, index, shares.tasks);
    first = units.begin * shares.unit;
    last = std::min(units.end * shares.unit, call.channels);
    columns = (last - first) * call.inner;
    start = first * call.inner;
    stride = call.channels * call.inner;
  }

  bool counts(int64_t row) const { return !call.mask || call.mask[row]; }
  template <class Each>
  void for_each_places(const Each& each) const {
    Places places;
    for (int64_t row = 0; row < call.rows;) {
      places.count = 0;
      for (; row < call.rows && places.count < Places::kMost; ++row)
        if (counts(row)) places.place[places.count++] = row * stride + start;
      each(static_cast<const Places&>(places));
    }
  }

  // A value per channel, to every column of it.
  template <class Source>
  void spread(const Source* values, T* target) const {
    for (int64_t c = 0; c < last - first; ++c)
      std::fill(target + c * call.inner, target + (c + 1) * call.inner, static_cast<T>(values[c]));
  }
  double fold(const double* sums, int64_t channel) const {
    double total = 0;
    for (int64_t j = 0; j < call.inner; ++j) total += sums[(channel - first) * call.inner + j];
    return total;
  }
  double inverse_deviation(int64_t channel) const {
    return 1.0 / std::sqrt(static_cast<const T*>(call.variance)[channel] + call.eps);
  }
  // What centred values are multiplied with.
  void fill_factors(T* factors) const {
    const T* weight = static_cast<const T*>(call.weight);
    for (int64_t c = first; c < last; ++c) {
      const double factor = inverse_deviation(c) * (weight ? weight[c] : 1.0);
      T* target = factors + (c - first) * call.inner;
      std::fill(target, target + call.inner, static_cast<T>(factor));
    }
  }
};

template <class T>
void fold_means(const Task<T>& task, const double* sums, void* means) {
  for (int64_t c = task.first; c < task.last; ++c)
    static_cast<T*>(means)[c] = static_cast<T>(task.fold(sums, c) * task.share);
}

// Mean and variance of every channel; leaves the mean of every column in `middle`.
template <class T>
void find_statistics(const Task<T>& task, T* middle) {
  Frame frame;
  const T* x = static_cast<const T*>(task.call.x);
  double* sums = frame.take_zeros<double>(2 * task.columns);
  double* squares = sums + task.columns;
  task.for_each_places([&](const Places& places) {
    add_terms<1>(places, task.columns, sums, [=](auto lane, int64_t place, int64_t q) {
      return Terms<typename decltype(lane)::Value, 1>{{lane.read(x + place + q)}};
    });
  });
  fold_means(task, sums, task.call.mean);
  task.spread(static_cast<const T*>(task.call.mean) + task.first, middle);
  task.for_each_places([&](const Places& places) {
    add_terms<1>(places, task.columns, squares, [=](auto lane, int64_t place, int64_t q) {
      const auto centred = lane.read(x + place + q) - lane.read(middle + q);
      return Terms<typename decltype(lane)::Value, 1>{{centred * centred}};
    });
  });
  fold_means(task, squares, task.call.variance);
}

// Lets running statistics follow those of some channels.
template <class T>
void follow(const Task<T>& task) {
  const seq2tens_batch_norm& call = task.call;
  const T *mean = static_cast<const T*>(call.mean), *variance = static_cast<const T*>(call.variance);
  T *running_mean = static_cast<T*>(call.running_mean), *running_variance = static_cast<T*>(call.running_variance);
  for (int64_t c = task.first; c < task.last; ++c) {
    running_mean[c] += static_cast<T>(call.momentum * (static_cast<double>(mean[c]) - running_mean[c]));
    running_variance[c] += static_cast<T>(call.momentum * (static_cast<double>(variance[c]) - running_variance[c]));
  }
}

template <class T>
void forward_task(const Task<T>& task) {
  Frame frame;
  const seq2tens_batch_norm& call = task.call;
  T *middle = frame.take<T>(task.columns), *factor = frame.take<T>(task.columns);
  T* constant = frame.take_zeros<T>(task.columns);
  find_statistics(task, middle);
  if (call.running_mean) follow(task);
  task.fill_factors(factor);
  if (call.bias) task.spread(static_cast<const T*>(call.bias) + task.first, constant);
  for (int64_t row = 0; row < call.rows; ++row) {
    const int64_t place = row * task.stride + task.start;
    const T* x = static_cast<const T*>(call.x) + place;
    T* y = static_cast<T*>(call.y) + place;
    if (!task.counts(row)) {
      std::fill(y, y + task.columns, T(0));
      continue;
    }
    for_each_column<T>(task.columns, [=](auto lane, int64_t q) {
      lane.write(y + q, (lane.read(x + q) - lane.read(middle + q)) * lane.read(factor + q) + lane.read(constant + q));
    });
  }
}

// Sums over rows of the derivatives, and of these times centred values.
template <class T>
void sum_gradients(const Task<T>& task, const T* dy, const T* middle, double* sums) {
  const T* x = static_cast<const T*>(task.call.x);
  task.for_each_places([&](const Places& places) {
    add_terms<2>(places, task.columns, sums, [=](auto lane, int64_t place, int64_t q) {
      const auto gradient = lane.read(dy + place + q);
      const auto centred = lane.read(x + place + q) - lane.read(middle + q);
      return Terms<typename decltype(lane)::Value, 2>{{gradient, gradient * centred}};
    });
  });
}

// What the derivative by every column loses: `level` for the mean and `slope`, times centred values, for the variance.
template <class T>
void fold_gradients(const Task<T>& task, const seq2tens_batch_norm_gradients& given, const double* sums, T* level,
                    T* slope) {
  const seq2tens_batch_norm& call = task.call;
  for (int64_t c = task.first; c < task.last; ++c) {
    const double plain = task.fold(sums, c), crossed = task.fold(sums + task.columns, c);
    const double inverse = task.inverse_deviation(c);
    const int64_t q = (c - task.first) * call.inner;
    std::fill(level + q, level + q + call.inner, static_cast<T>(plain * task.share));
    std::fill(slope + q, slope + q + call.inner, static_cast<T>(crossed * task.share * inverse * inverse));
    if (given.weight) static_cast<T*>(given.weight)[c] = static_cast<T>(crossed * inverse);
    if (given.bias) static_cast<T*>(given.bias)[c] = static_cast<T>(plain);
  }
}

template <class T>
void backward_task(const Task<T>& task, const seq2tens_batch_norm_gradients& given) {
  Frame frame;
  const seq2tens_batch_norm& call = task.call;
  const T* dy = static_cast<const T*>(given.y);
  T *middle = frame.take<T>(task.columns), *factor = frame.take<T>(task.columns);
  T *level = frame.take<T>(task.columns), *slope = frame.take<T>(task.columns);
  double* sums = frame.take_zeros<double>(2 * task.columns);
  task.spread(static_cast<const T*>(call.mean) + task.first, middle);
  task.fill_factors(factor);
  sum_gradients(task, dy, middle, sums);
  fold_gradients(task, given, sums, level, slope);
  for (int64_t row = 0; given.x && row < call.rows; ++row) {
    const int64_t place = row * task.stride + task.start;
    const T* x = static_cast<const T*>(call.x) + place;
    T* dx = static_cast<T*>(given.x) + place;
    if (!task.counts(row)) {
      std::fill(dx, dx + task.columns, T(0));
      continue;
    }
    for_each_column<T>(task.columns, [=](auto lane, int64_t q) {
      const auto lost = lane.read(level + q) + (lane.read(x + q) - lane.read(middle + q)) * lane.read(slope + q);
      lane.write(dx + q, (lane.read(dy + place + q) - lost) * lane.read(factor + q));
    });
  }
}

template <class T>
void forward(const seq2tens_batch_norm& call) {
  const Shares shares = share_out(call);
  const double share = share_of_value(call);
  for_each_task(shares.tasks, call.threads,
                [&](int64_t index) { forward_task(Task<T>(call, shares, share, index)); });
}

template <class T>
void backward(const seq2tens_batch_norm_gradients& given) {
  const Shares shares = share_out(*given.call);
  const double share = share_of_value(*given.call);
  for_each_task(shares.tasks, given.call->threads,
                [&](int64_t index) { backward_task(Task<T>(*given.call, shares, share, index), given); });
}

}  // namespace
}  // namespace batch_norm_detail

void batch_norm_forward(const seq2tens_batch_norm& call) {
  call.is_double ? batch_norm_detail::forward<double>(call) : batch_norm_detail::forward<float>(call);
}

void batch_norm_backward(const seq2tens_batch_norm_gradients& given) {
  given.call->is_double ? batch_norm_detail::backward<double>(given) : batch_norm_detail::backward<float>(given);
}

}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
