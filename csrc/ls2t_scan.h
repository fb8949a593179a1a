// The recursion and its adjoint for one word of functionals, over a block of steps of one sequence.
//
// Between blocks a state is a double, for any T. Within a block only the change since its beginning is summed in T, so
// that sums over a million steps stay accurate. Each lane holds one functional.
#pragma once
#include <algorithm>
#include <type_traits>

#include "words.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {
namespace {

// The steps of a block in memory; `i` counts them in the order of the scan.
struct Steps {
  int64_t count;
  const uint8_t* mask;  // mask from the first step in memory on; NULL: all steps are valid
  bool reverse;
  int64_t place(int64_t i) const { return reverse ? count - 1 - i : i; }
  bool counts(int64_t i) const { return !mask || mask[place(i)]; }
  // The number of valid steps.
  int64_t rows() const {
    if (!mask) return count;
    int64_t rows = 0;
    for (int64_t i = 0; i < count; ++i) rows += mask[i] != 0;
    return rows;
  }
};

// A scan of one block of a sequence. Only valid steps have rows of factors, so there are no gaps between them.
template <class T>
struct Scan {
  Steps steps;
  int64_t rows;         // number of valid steps
  int64_t group_width;  // number of functionals, with padding
  int64_t functionals;  // number of functionals, without padding
  const T* factors;     // [rows, columns] inner products without bias
  int64_t columns;
  const T* bias;        // [columns]
  double* states;       // [positions, group width]
  T* out;               // levels of the first step in memory, or NULL
  int64_t out_stride;   // from step to step
  int64_t level_stride;

  const T* first_factors() const { return steps.reverse ? factors + (rows - 1) * columns : factors; }
  int64_t factor_stride() const { return steps.reverse ? -columns : columns; }
  T* first_out() const { return steps.reverse ? out + (steps.count - 1) * out_stride : out; }
  int64_t signed_out_stride() const { return steps.reverse ? -out_stride : out_stride; }
};

template <class T>
inline Vector<T> load_state(const double* state) {
  Vector<T> v;
  for (int64_t i = 0; i < Vectors<T>::lanes; ++i) v[i] = static_cast<T>(state[i]);
  return v;
}

template <class T>
inline void add_change(double* state, Vector<T> change) {
  for (int64_t i = 0; i < Vectors<T>::lanes; ++i) state[i] += change[i];
}

// Calls run(M) with the length of a word as a constant, so that its states stay in registers; M is 0 for a long word.
template <int M = 1, class Run>
inline void with_length(int64_t length, const Run& run) {
  if constexpr (M > 10)
    run(std::integral_constant<int, 0>());
  else if (length == M)
    run(std::integral_constant<int, M>());
  else
    with_length<M + 1>(length, run);
}

// Scans U vectors of functionals, from column q on, with a word of M vectors. If M is 0, the word has any length, and
// its states are in `memory`. Without `Whole` the last lanes are padding.
template <class T, int M, int U, bool Whole>
void scan_word(const Scan<T>& scan, const Word& word, int64_t q, Vector<T>* memory) {
  constexpr int64_t lanes = Vectors<T>::lanes, known = std::max(M, 1);
  const int64_t width = scan.group_width, length = M > 0 ? M : word.length;
  Vector<T> local[3 * U * known], biases[U * known];
  Vector<T>*base = M > 0 ? local : memory, *change = base + U * length, *value = change + U * length;
  int64_t columns[known], places[known];
  const auto column = [&](int64_t m) { return M > 0 ? columns[m] : word.component[m] * width + q; };
  const auto place = [&](int64_t m) { return M > 0 ? places[m] : word.level[m] * scan.level_stride; };
  const auto bias = [&](int64_t k) { return M > 0 ? biases[k] : load(scan.bias + column(k)); };

  for (int64_t m = 0; m < M; ++m) {
    columns[m] = word.component[m] * width + q;
    places[m] = word.level[m] * scan.level_stride;
    for (int u = 0; u < U; ++u) biases[m * U + u] = load(scan.bias + columns[m] + u * lanes);
  }
  for (int64_t m = 0; m < length; ++m)
    for (int u = 0; u < U; ++u) {
      base[m * U + u] = value[m * U + u] = load_state<T>(scan.states + (word.first + m) * width + q + u * lanes);
      change[m * U + u] = Vector<T>{};
    }
  const T* row = scan.first_factors();
  T* out = scan.out ? scan.first_out() + q : nullptr;
  const int64_t row_stride = scan.factor_stride(), out_stride = scan.signed_out_stride();
  for (int64_t i = 0; i < scan.steps.count; ++i) {
    if (scan.steps.counts(i)) {
      for (int64_t m = length - 1; m >= 0; --m)
        for (int u = 0; u < U; ++u) {
          const int64_t k = m * U + u;
          const Vector<T> factor = load(row + column(m) + u * lanes) + bias(k);
          change[k] += m > 0 ? factor * value[k - U] : factor;
          value[k] = base[k] + change[k];
        }
      row += row_stride;
    }
    if (out) {
      for (int64_t m = 0; m < length; ++m)
        for (int u = 0; place(m) >= 0 && u < U; ++u) {
          T* target = out + place(m) + u * lanes;
          Whole ? store(target, value[m * U + u]) : store_some(target, value[m * U + u], scan.functionals - q);
        }
      out += out_stride;
    }
  }
  for (int64_t m = 0; m < length; ++m)
    for (int u = 0; u < U; ++u)
      add_change<T>(scan.states + (word.first + m) * width + q + u * lanes, change[m * U + u]);
}

// Scans a block with one word; `memory` has room for three vectors per letter. Short words have few independent sums,
// so several columns are scanned together to hide latency.
template <class T>
void scan_any_word(const Scan<T>& scan, const Word& word, Vector<T>* memory) {
  with_length(word.length, [&](auto length) {
    constexpr int64_t lanes = Vectors<T>::lanes;
    constexpr int M = length, U = M == 0 || M > 4 ? 1 : M > 2 ? 2 : 4;
    int64_t q = 0;
    for (; q + U * lanes <= scan.functionals; q += U * lanes) scan_word<T, M, U, true>(scan, word, q, memory);
    for (; q + lanes <= scan.functionals; q += lanes) scan_word<T, M, 1, true>(scan, word, q, memory);
    if (q < scan.functionals) scan_word<T, M, 1, false>(scan, word, q, memory);
  });
}

// The arguments of the adjoint of a scan, whose `states` are those before the block.
template <class T>
struct Retrace {
  Scan<T> scan;          // without `out`
  const T* dout;         // gradients of the levels from the first step in memory on, or NULL
  double* adjoints;      // [positions, group width] gradients of the states after the block, then of those before it
  T* dfactors;           // [rows, columns]
  bool shared;           // whether to add to `dfactors` instead of overwriting them
  Vector<T>* path;       // room for the states before every step of a word
  Vector<T>* memory;     // room for three vectors per letter
};

// Goes back through a block with one vector of functionals and a word of M vectors, or of any length if M is 0.
template <class T, int M>
void retrace_word(const Retrace<T>& back, const Word& word, int64_t q) {
  constexpr int64_t lanes = Vectors<T>::lanes;
  const Scan<T>& scan = back.scan;
  const int64_t width = scan.group_width, length = M > 0 ? M : word.length;
  const int64_t present = std::clamp<int64_t>(scan.functionals - q, 0, lanes), row_stride = scan.factor_stride();
  Vector<T> local[3 * (M > 0 ? M : 1)];
  Vector<T>*base = M > 0 ? local : back.memory, *change = base + length, *value = change + length;

  for (int64_t m = 0; m < length; ++m) {
    base[m] = value[m] = load_state<T>(scan.states + (word.first + m) * width + q);
    change[m] = Vector<T>{};
  }
  const T* row = scan.first_factors();
  Vector<T>* before = back.path;
  for (int64_t i = 0; i < scan.rows; ++i, row += row_stride, before += length)
    for (int64_t m = length - 1; m >= 0; --m) {
      const int64_t column = word.component[m] * width + q;
      const Vector<T> factor = load(row + column) + load(scan.bias + column);
      before[m] = value[m];
      change[m] += m > 0 ? factor * value[m - 1] : factor;
      value[m] = base[m] + change[m];
    }

  for (int64_t m = 0; m < length; ++m) {
    base[m] = load_state<T>(back.adjoints + (word.first + m) * width + q);
    change[m] = Vector<T>{};
  }
  T* drow = back.dfactors + (scan.steps.reverse ? 0 : (scan.rows - 1) * scan.columns);
  for (int64_t i = scan.steps.count - 1; i >= 0; --i) {
    if (back.dout) {
      const T* dout = back.dout + scan.steps.place(i) * scan.out_stride + q;
      for (int64_t m = 0; m < length; ++m)
        if (word.level[m] >= 0) {
          const T* place = dout + word.level[m] * scan.level_stride;
          change[m] += present == lanes ? load(place) : load_some(place, present);
        }
    }
    if (!scan.steps.counts(i)) continue;
    row -= row_stride;
    before -= length;
    for (int64_t m = 0; m < length; ++m) {
      const int64_t column = word.component[m] * width + q;
      const Vector<T> flow = base[m] + change[m];
      Vector<T> dfactor = m > 0 ? flow * before[m - 1] : flow;
      if (back.shared) dfactor += load(drow + column);
      store(drow + column, dfactor);
      if (m > 0) change[m - 1] += flow * (load(row + column) + load(scan.bias + column));
    }
    drow -= row_stride;
  }
  for (int64_t m = 0; m < length; ++m) add_change<T>(back.adjoints + (word.first + m) * width + q, change[m]);
}

// Goes back through a block with one word. Padded functionals are included, because the following products read them.
template <class T>
void retrace_any_word(const Retrace<T>& back, const Word& word) {
  with_length(word.length, [&](auto length) {
    for (int64_t q = 0; q < back.scan.group_width; q += Vectors<T>::lanes) retrace_word<T, length>(back, word, q);
  });
}

}  // namespace
}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
