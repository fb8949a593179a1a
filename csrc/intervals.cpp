// Look-up of intervals: rows of tables are joined in registers and the L1 cache. Most of the time goes into loading
// rows from memory, so those of the next intervals are prefetched.
#include "subwords.h"
#include "parallel.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {
namespace intervals_detail {
namespace {

// A table, and the row that each interval uses.
template <class T>
struct Part {
  const T* table;
  const int64_t* rows;
  int64_t size;  // numbers per row

  const T* row(int64_t interval) const { return table + rows[interval] * size; }
  // Always inlined, because gcc assumes that a function that only prefetches does nothing and drops calls of it.
  __attribute__((always_inline)) void fetch(int64_t interval) const {
    const T* numbers = row(interval);
    for (int64_t k = 0; k < size; k += static_cast<int64_t>(64 / sizeof(T))) __builtin_prefetch(numbers + k);
  }
};

template <class T>
struct Lookup {
  const seq2tens_intervals& call;
  const seq2tens_subwords& subwords;
  Part<T> end, left, right, beginning;

  explicit Lookup(const seq2tens_intervals& call) : call(call), subwords(*call.subwords) {
    const int64_t state_size = subwords.states * call.width, size = subwords.words * call.width;
    end = {static_cast<const T*>(call.ends), call.end, state_size};
    left = {static_cast<const T*>(call.stretches), call.left, size};
    right = {static_cast<const T*>(call.stretches), call.right, size};
    beginning = {static_cast<const T*>(call.beginnings), call.beginning, size};
  }
  __attribute__((always_inline)) void fetch(int64_t interval) const {
    for (const Part<T>* part : {&end, &left, &right, &beginning}) part->fetch(interval);
  }
};

// Joins a vector of functionals from column q on, or only `count` of them, for one interval.
template <class T, bool Whole>
struct Column {
  const Lookup<T>& lookup;
  int64_t q, count;
  Vector<T>* states;  // one vector per state

  Vector<T> read(const T* row, int64_t word) const {
    const T* p = row + (word - 1) * lookup.call.width + q;
    return Whole ? load(p) : load_some(p, count);
  }
  // Appends a row of values to the steps so far. Long words come first, because they need the old values of short ones.
  void append(const T* row) const {
    const seq2tens_subwords& subwords = lookup.subwords;
    for (int64_t i = 0; i < subwords.words; ++i) {
      const int64_t word = subwords.order[i];
      if (word > subwords.states) continue;
      states[word - 1] = join_word<Vector<T>>(
          subwords, word, [&](int64_t w) { return states[w - 1]; }, [&](int64_t w) { return read(row, w); });
    }
  }
  void run(int64_t interval) const {
    const seq2tens_intervals& call = lookup.call;
    const seq2tens_subwords& subwords = lookup.subwords;
    const T* end = lookup.end.row(interval);
    for (int64_t word = 1; word <= subwords.states; ++word) states[word - 1] = read(end, word);
    if (call.left[interval] != call.nothing) append(lookup.left.row(interval));
    if (call.right[interval] != call.nothing) append(lookup.right.row(interval));
    append(lookup.beginning.row(interval));
    T* out = static_cast<T*>(call.out) + interval * subwords.levels * call.width + q;
    for (int64_t level = 0; level < subwords.levels; ++level, out += call.width) {
      const Vector<T> value = states[subwords.output[level] - 1];
      Whole ? store(out, value) : store_some(out, value, count);
    }
  }
};

// The last vector is aligned to the end of the row, so some functionals are looked up twice.
template <class T>
void run_interval(const Lookup<T>& lookup, int64_t interval, Vector<T>* states) {
  constexpr int64_t lanes = Vectors<T>::lanes;
  const int64_t width = lookup.call.width;
  if (width < lanes) return Column<T, false>{lookup, 0, width, states}.run(interval);
  for (int64_t q = 0; q < width; q += lanes)
    Column<T, true>{lookup, std::min(q, width - lanes), lanes, states}.run(interval);
}

template <class T>
void run(const seq2tens_intervals& call) {
  constexpr int64_t kWorthATask = worth_a_task(1 << 15), kAhead = 4;
  const Lookup<T> lookup(call);
  const int64_t worth = call.count * lookup.subwords.levels * call.width / kWorthATask;
  const int64_t tasks = std::max<int64_t>(1, std::min<int64_t>(16, worth));
  for_each_task(tasks, threads_worth(worth, call.threads), [&](int64_t task) {
    Frame frame;
    Vector<T>* states = frame.take<Vector<T>>(lookup.subwords.states);
    const Range range(call.count, task, tasks);
    for (int64_t i = range.begin; i < range.end; ++i) {
      lookup.fetch(std::min(i + kAhead, call.count - 1));
      run_interval(lookup, i, states);
    }
  });
}

}  // namespace
}  // namespace intervals_detail

void join_intervals(const seq2tens_intervals& call) {
  call.is_double ? intervals_detail::run<double>(call) : intervals_detail::run<float>(call);
}

}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
