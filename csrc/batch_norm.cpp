// Batch normalisation over the valid rows. A task is a range of channels, each of `inner` adjacent columns. Every
// column is summed from row to row in doubles, so results do not depend on threads or on the number of lanes.
#include <algorithm>
#include <cmath>

#include "parallel.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {
namespace batch_norm_detail {
namespace {

// How channels are divided into tasks: by shapes only, and at cache lines of float32.
struct Shares {
  int64_t unit;   // channels per unit
  int64_t units;
  int64_t tasks;
  int64_t threads;
  double weight;  // weight of a value in a mean

  explicit Shares(const seq2tens_batch_norm& call) {
    constexpr int64_t kWorthATask = worth_a_task(1 << 16);  // numbers, some 20 µs
    unit = (kFunctionalLanes + call.inner - 1) / std::max<int64_t>(1, call.inner);
    units = (call.channels + unit - 1) / std::max<int64_t>(1, unit);
    const int64_t worth = call.rows * call.channels * call.inner / kWorthATask;
    tasks = std::max<int64_t>(1, std::min({units, worth, int64_t{16}}));
    threads = threads_worth(worth, call.threads);
    int64_t count = call.rows;
    if (call.mask) count -= std::count(call.mask, call.mask + call.rows, uint8_t{0});
    weight = 1.0 / static_cast<double>(std::max<int64_t>(1, count) * call.inner);
  }
};

// The channels of a task, and values for each of their columns.
template <class T>
struct Task {
  const seq2tens_batch_norm& call;
  double weight;        // weight of a value in a mean
  int64_t first, last;  // channels
  int64_t columns;      // number of columns
  Frame frame;
  T* mean;
  T* factor;            // factor of centred values
  double *sum, *product;

  Task(const seq2tens_batch_norm& call, const Shares& shares, int64_t index) : call(call), weight(shares.weight) {
    const Range units(shares.units, index, shares.tasks);
    first = units.begin * shares.unit;
    last = std::min(units.end * shares.unit, call.channels);
    columns = (last - first) * call.inner;
    mean = frame.take<T>(columns);
    factor = frame.take<T>(columns);
    sum = frame.take_zeros<double>(columns);
    product = frame.take_zeros<double>(columns);
  }

  // Calls each(place of the first column) for every valid row, others(place) for the rest.
  template <class Each, class Others>
  void for_each_row(const Each& each, const Others& others) const {
    const int64_t stride = call.channels * call.inner;
    for (int64_t row = 0; row < call.rows; ++row) {
      const int64_t place = row * stride + first * call.inner;
      !call.mask || call.mask[row] ? each(place) : others(place);
    }
  }
  template <class Each>
  void for_each_row(const Each& each) const {
    for_each_row(each, [](int64_t) {});
  }

  // Copies one number per channel to all columns of the channel.
  void spread(const void* values, T* target) const {
    for (int64_t c = first; c < last; ++c, target += call.inner)
      std::fill(target, target + call.inner, static_cast<const T*>(values)[c]);
  }
  // The sum over the columns of a channel.
  double fold(const double* sums, int64_t channel) const {
    double total = 0;
    for (int64_t j = 0; j < call.inner; ++j) total += sums[(channel - first) * call.inner + j];
    return total;
  }
  double inverse_deviation(int64_t channel) const {
    return 1.0 / std::sqrt(static_cast<const T*>(call.variance)[channel] + call.eps);
  }
  void fill_factors() const {
    const T* weights = static_cast<const T*>(call.weight);
    for (int64_t c = first; c < last; ++c) {
      const T value = static_cast<T>(inverse_deviation(c) * (weights ? weights[c] : 1.0));
      std::fill(factor + (c - first) * call.inner, factor + (c - first + 1) * call.inner, value);
    }
  }
};

template <class T>
void find_statistics(const Task<T>& task) {
  const seq2tens_batch_norm& call = task.call;
  const T* x = static_cast<const T*>(call.x);
  T *means = static_cast<T*>(call.mean), *variances = static_cast<T*>(call.variance);
  task.for_each_row([&](int64_t place) {
    for (int64_t q = 0; q < task.columns; ++q) task.sum[q] += x[place + q];
  });
  for (int64_t c = task.first; c < task.last; ++c) means[c] = static_cast<T>(task.fold(task.sum, c) * task.weight);
  task.spread(means, task.mean);
  task.for_each_row([&](int64_t place) {
    for (int64_t q = 0; q < task.columns; ++q) {
      const double centred = static_cast<double>(x[place + q]) - static_cast<double>(task.mean[q]);
      task.product[q] += centred * centred;
    }
  });
  for (int64_t c = task.first; c < task.last; ++c)
    variances[c] = static_cast<T>(task.fold(task.product, c) * task.weight);
}

// Moves a running statistic towards that of the batch.
template <class T>
void follow(const Task<T>& task, const void* batch, void* running) {
  const T* from = static_cast<const T*>(batch);
  T* to = static_cast<T*>(running);
  for (int64_t c = task.first; c < task.last; ++c)
    to[c] += static_cast<T>(task.call.momentum * (static_cast<double>(from[c]) - to[c]));
}

template <class T>
void forward_task(Task<T>& task) {
  const seq2tens_batch_norm& call = task.call;
  T *bias = task.frame.template take_zeros<T>(task.columns), *y = static_cast<T*>(call.y);
  const T* x = static_cast<const T*>(call.x);
  find_statistics(task);
  if (call.running_mean) follow(task, call.mean, call.running_mean);
  if (call.running_mean) follow(task, call.variance, call.running_variance);
  task.fill_factors();
  if (call.bias) task.spread(call.bias, bias);
  task.for_each_row(
      [&](int64_t place) {
        for (int64_t q = 0; q < task.columns; ++q)
          y[place + q] = (x[place + q] - task.mean[q]) * task.factor[q] + bias[q];
      },
      [&](int64_t place) { std::fill(y + place, y + place + task.columns, T(0)); });
}

// What is subtracted from the gradient of a column: `level` through the mean and, through the variance, `slope` times
// the centred value.
template <class T>
struct Losses {
  T *level, *slope;

  Losses(Task<T>& task, const seq2tens_batch_norm_gradients& given)
      : level(task.frame.template take<T>(task.columns)), slope(task.frame.template take<T>(task.columns)) {
    for (int64_t c = task.first; c < task.last; ++c) {
      const double plain = task.fold(task.sum, c), crossed = task.fold(task.product, c);
      const double inverse = task.inverse_deviation(c);
      const int64_t begin = (c - task.first) * task.call.inner, end = begin + task.call.inner;
      std::fill(level + begin, level + end, static_cast<T>(plain * task.weight));
      std::fill(slope + begin, slope + end, static_cast<T>(crossed * task.weight * inverse * inverse));
      if (given.weight) static_cast<T*>(given.weight)[c] = static_cast<T>(crossed * inverse);
      if (given.bias) static_cast<T*>(given.bias)[c] = static_cast<T>(plain);
    }
  }
};

template <class T>
void backward_task(Task<T>& task, const seq2tens_batch_norm_gradients& given) {
  const T *x = static_cast<const T*>(task.call.x), *dy = static_cast<const T*>(given.y);
  T* dx = static_cast<T*>(given.x);
  task.spread(task.call.mean, task.mean);
  task.fill_factors();
  task.for_each_row([&](int64_t place) {
    for (int64_t q = 0; q < task.columns; ++q) {
      const double gradient = dy[place + q];
      task.sum[q] += gradient;
      task.product[q] += gradient * (static_cast<double>(x[place + q]) - static_cast<double>(task.mean[q]));
    }
  });
  const Losses<T> losses(task, given);
  if (!dx) return;
  task.for_each_row(
      [&](int64_t place) {
        for (int64_t q = 0; q < task.columns; ++q) {
          const T lost = losses.level[q] + (x[place + q] - task.mean[q]) * losses.slope[q];
          dx[place + q] = (dy[place + q] - lost) * task.factor[q];
        }
      },
      [&](int64_t place) { std::fill(dx + place, dx + place + task.columns, T(0)); });
}

template <class T>
void forward(const seq2tens_batch_norm& call) {
  const Shares shares(call);
  for_each_task(shares.tasks, shares.threads, [&](int64_t index) {
    Task<T> task(call, shares, index);
    forward_task(task);
  });
}

template <class T>
void backward(const seq2tens_batch_norm_gradients& given) {
  const Shares shares(*given.call);
  for_each_task(shares.tasks, shares.threads, [&](int64_t index) {
    Task<T> task(*given.call, shares, index);
    backward_task(task, given);
  });
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
