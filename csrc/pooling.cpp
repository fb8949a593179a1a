// Pooling along time, in one pass over each path. The functionals of a step are adjacent and form whole vectors.
//
// A few dozen steps are summed in T, then added to sums in doubles. NaN at a valid step makes the results of its
// functional NaN, and in a contest those of its group.
#include <limits>
#include <utility>

#include "parallel.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {
namespace pooling_detail {
namespace {

constexpr int64_t kStepsPerSum = 64;

// The larger or smaller of two numbers; NaN if the second one is.
template <class V>
inline V larger(V a, V b) {
  return a > b ? a : b;
}
template <class V>
inline V smaller(V a, V b) {
  return a < b ? a : b;
}

// Lanes in which NaN has been seen.
template <class T>
struct Seen {
  decltype(Vector<T>{} != Vector<T>{}) nan = {};
  void look(Vector<T> value) { nan |= value != value; }
  bool any() const {
    bool any = false;
    for (int64_t k = 0; k < Vectors<T>::lanes; ++k) any |= nan[k] != 0;
    return any;
  }
};

// The valid steps of a sequence.
template <class T>
struct Sequence {
  const T* rows;
  int64_t steps;
  int64_t width;
};

template <class T, class Call>
Sequence<T> sequence_of(const Call& call, int64_t index) {
  return {static_cast<const T*>(call.path) + index * call.length * call.width,
          std::min(call.lengths[index], call.length), call.width};
}

// Calls pool(index) for all sequences of a call.
template <class Call, class Pool>
void for_each_sequence(const Call& call, const Pool& pool) {
  constexpr int64_t kWorthATask = worth_a_task(1 << 16);  // numbers, some 10 µs
  const int64_t worth = call.batch * call.length * call.width / kWorthATask;
  const int64_t tasks = std::max<int64_t>(1, std::min({call.batch, worth, int64_t{16}}));
  for_each_task(tasks, threads_worth(worth / 2, call.threads), [&](int64_t task) {
    const Range range(call.batch, task, tasks);
    for (int64_t i = range.begin; i < range.end; ++i) pool(i);
  });
}

// A sum along time for each of U vectors of functionals.
template <class T, int U>
class Sums {
 public:
  void add(int u, Vector<T> value) { part_[u] += value; }
  void move() {
    for (int u = 0; u < U; ++u) {
      for (int64_t k = 0; k < Vectors<T>::lanes; ++k) total_[u * Vectors<T>::lanes + k] += part_[u][k];
      part_[u] = Vector<T>{};
    }
  }
  void write_means(T* target, int64_t count, int64_t steps) const {
    for (int64_t k = 0; k < count; ++k) target[k] = static_cast<T>(total_[k] / static_cast<double>(steps));
  }

 private:
  Vector<T> part_[U] = {};
  double total_[U * Vectors<T>::lanes] = {};
};

// Calls step(row) for all steps, and move() after every few dozen of them.
template <class T, class Step, class Move>
inline void for_each_step(const Sequence<T>& sequence, const Step& step, const Move& move) {
  for (int64_t begin = 0; begin < sequence.steps; begin += kStepsPerSum) {
    const int64_t end = std::min(begin + kStepsPerSum, sequence.steps);
    for (int64_t t = begin; t < end; ++t) step(sequence.rows + t * sequence.width);
    move();
  }
}

// Pools the paths of U vectors of functionals, step by step.
template <class T, int U>
struct PathPools {
  Sums<T, U> share, changes;
  Vector<T> run[U] = {}, longest[U] = {}, before[U] = {};
  Seen<T> seen[U];

  // Adds a step; `ramp`, before clamping, is above 1 far above the threshold and below 0 far below it.
  void add(int u, Vector<T> value, Vector<T> ramp, bool first) {
    const Vector<T> one = fill(T(1));
    ramp = smaller(one, larger(Vector<T>{}, ramp));
    seen[u].look(value);
    share.add(u, ramp);
    if (!first) changes.add(u, larger(ramp - before[u], before[u] - ramp));
    before[u] = ramp;
    run[u] = (run[u] + one) * ramp;
    longest[u] = larger(longest[u], run[u]);
  }
  void write_stretch(int u, T* target, int64_t count, int64_t steps) {
    const Vector<T> share_of_steps = longest[u] / fill(static_cast<T>(steps));
    store_some(target, seen[u].nan ? fill(std::numeric_limits<T>::quiet_NaN()) : share_of_steps, count);
  }
};

// Pools U vectors of functionals from column q on, or only `count` functionals if U is 1.
template <class T, int U, bool Whole>
void pool_columns(const seq2tens_path_pool& call, int64_t index, int64_t q, int64_t count) {
  constexpr int64_t lanes = Vectors<T>::lanes;
  const auto read = [count](const T* p) { return Whole ? load(p) : load_some(p, count); };
  const Sequence<T> sequence = sequence_of<T>(call, index);
  const Vector<T> steepness = fill(static_cast<T>(call.steepness)), half = fill(T(0.5));
  Vector<T> threshold[U];
  for (int u = 0; u < U; ++u) threshold[u] = read(static_cast<const T*>(call.threshold) + q + u * lanes);
  PathPools<T, U> pools;
  const auto step = [&](const T* row) {
    for (int u = 0; u < U; ++u) {
      const Vector<T> value = read(row + q + u * lanes);
      pools.add(u, value, (value - threshold[u]) * steepness + half, row == sequence.rows);
    }
  };
  for_each_step(sequence, step, [&] { pools.share.move(), pools.changes.move(); });
  const int64_t place = index * call.width + q;
  pools.share.write_means(static_cast<T*>(call.share) + place, count, sequence.steps);
  pools.changes.write_means(static_cast<T*>(call.changes) + place, count, sequence.steps);
  for (int u = 0; u < U; ++u)
    pools.write_stretch(u, static_cast<T*>(call.stretch) + place + u * lanes, std::min(lanes, count - u * lanes),
                        sequence.steps);
}

// Pools all functionals of a sequence. The last vector is aligned to the end of the row, so some are pooled twice.
template <class T>
void pool_sequence(const seq2tens_path_pool& call, int64_t index) {
  constexpr int64_t lanes = Vectors<T>::lanes;
  if (call.width < lanes) return pool_columns<T, 1, false>(call, index, 0, call.width);
  int64_t q = 0;
  for (; q + 4 * lanes <= call.width; q += 4 * lanes) pool_columns<T, 4, true>(call, index, q, 4 * lanes);
  for (; q + 2 * lanes <= call.width; q += 2 * lanes) pool_columns<T, 2, true>(call, index, q, 2 * lanes);
  for (; q < call.width; q += lanes) pool_columns<T, 1, true>(call, index, std::min(q, call.width - lanes), lanes);
}

// Pools contests in rows of any width.
template <class T>
void contest_of_numbers(const seq2tens_contest_pool& call, int64_t index) {
  const Sequence<T> sequence = sequence_of<T>(call, index);
  const int64_t width = call.width, groups = call.groups;
  const T steepness = static_cast<T>(call.steepness);
  Frame frame;
  T *top = frame.take<T>(groups), *bottom = frame.take<T>(groups);
  double *wins = frame.take_zeros<double>(width), *losses = frame.take_zeros<double>(width);
  for (int64_t t = 0; t < sequence.steps; ++t) {
    const T* row = sequence.rows + t * width;
    std::copy(row, row + groups, top);
    std::copy(row, row + groups, bottom);
    for (int64_t k = groups; k < width; k += groups)
      for (int64_t g = 0; g < groups; ++g) {
        if (top[g] == top[g]) top[g] = larger(top[g], row[k + g]);
        if (bottom[g] == bottom[g]) bottom[g] = smaller(bottom[g], row[k + g]);
      }
    for (int64_t k = 0; k < width; k += groups)
      for (int64_t g = 0; g < groups; ++g) {
        wins[k + g] += larger(T(0), 1 - (top[g] - row[k + g]) * steepness) * top[g];
        losses[k + g] += larger(T(0), 1 - (row[k + g] - bottom[g]) * steepness);
      }
  }
  for (int64_t k = 0; k < width; ++k) {
    static_cast<T*>(call.wins)[index * width + k] = static_cast<T>(wins[k] / static_cast<double>(sequence.steps));
    static_cast<T*>(call.losses)[index * width + k] = static_cast<T>(losses[k] / static_cast<double>(sequence.steps));
  }
}

template <class T, int Shift, int64_t... Lane>
inline Vector<T> rotate(Vector<T> v, std::integer_sequence<int64_t, Lane...>) {
  return Vector<T>{v[(Lane + Shift) % Vectors<T>::lanes]...};
}

// Gives every lane the extreme, by `choose`, of all lanes of its group.
template <class T, int Shift = Vectors<T>::lanes / 2, class Choose>
inline Vector<T> extreme_of_groups(Vector<T> v, int64_t groups, const Choose& choose) {
  if constexpr (Shift > 0) {
    if (Shift < groups) return v;
    v = choose(v, rotate<T, Shift>(v, std::make_integer_sequence<int64_t, Vectors<T>::lanes>()));
    return extreme_of_groups<T, Shift / 2>(v, groups, choose);
  }
  return v;
}

// Pools contests in rows of U vectors, each of which holds members of all groups. With NaN, `contest_of_numbers` runs.
template <class T, int U>
void contest_of_vectors(const seq2tens_contest_pool& call, int64_t index) {
  constexpr int64_t lanes = Vectors<T>::lanes;
  const Sequence<T> sequence = sequence_of<T>(call, index);
  const Vector<T> steepness = fill(static_cast<T>(call.steepness)), one = fill(T(1)), zero = {};
  Seen<T> seen;
  Sums<T, U> wins, losses;
  const auto step = [&](const T* row) {
    Vector<T> value[U], top = load(row), bottom = top;
    for (int u = 0; u < U; ++u) {
      value[u] = load(row + u * lanes);
      seen.look(value[u]);
      top = larger(top, value[u]);
      bottom = smaller(bottom, value[u]);
    }
    top = extreme_of_groups<T>(top, call.groups, larger<Vector<T>>);
    bottom = extreme_of_groups<T>(bottom, call.groups, smaller<Vector<T>>);
    for (int u = 0; u < U; ++u) {
      wins.add(u, larger(zero, one - (top - value[u]) * steepness) * top);
      losses.add(u, larger(zero, one - (value[u] - bottom) * steepness));
    }
  };
  for_each_step(sequence, step, [&] { wins.move(), losses.move(); });
  if (seen.any()) return contest_of_numbers<T>(call, index);
  wins.write_means(static_cast<T*>(call.wins) + index * call.width, call.width, sequence.steps);
  losses.write_means(static_cast<T*>(call.losses) + index * call.width, call.width, sequence.steps);
}

template <class T>
void contest_of_sequence(const seq2tens_contest_pool& call, int64_t index) {
  constexpr int64_t lanes = Vectors<T>::lanes;
  const bool fits = lanes % call.groups == 0 && call.width % lanes == 0;
  switch (fits ? call.width / lanes : 0) {
    case 1: return contest_of_vectors<T, 1>(call, index);
    case 2: return contest_of_vectors<T, 2>(call, index);
    case 4: return contest_of_vectors<T, 4>(call, index);
    case 8: return contest_of_vectors<T, 8>(call, index);
    default: return contest_of_numbers<T>(call, index);
  }
}

}  // namespace
}  // namespace pooling_detail

void pool_path(const seq2tens_path_pool& call) {
  using namespace pooling_detail;
  for_each_sequence(call, [&](int64_t index) {
    call.is_double ? pool_sequence<double>(call, index) : pool_sequence<float>(call, index);
  });
}

void pool_contest(const seq2tens_contest_pool& call) {
  using namespace pooling_detail;
  for_each_sequence(call, [&](int64_t index) {
    call.is_double ? contest_of_sequence<double>(call, index) : contest_of_sequence<float>(call, index);
  });
}

}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
