// One word of functionals over a block of steps of one sequence: the recursion and its adjoint.
//
// Between blocks a state is a double, whatever T is. Within a block only the change since its beginning is summed in
// T, so that sums over a million steps stay accurate. Functionals lie side by side, one per lane.
#pragma once
#include <algorithm>

#include "words.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {
namespace {

// Steps of a block in memory, in the order in which the scan meets them.
struct Steps {
  int64_t count;
  const uint8_t* mask;  // of the first step in memory; NULL: all count
  bool reverse;
  int64_t place(int64_t i) const { return reverse ? count - 1 - i : i; }
  bool counts(int64_t i) const { return !mask || mask[place(i)]; }
  // How many rows the steps that count take, without gaps.
  int64_t rows() const {
    if (!mask) return count;
    int64_t rows = 0;
    for (int64_t i = 0; i < count; ++i) rows += mask[i] != 0;
    return rows;
  }
};

// A scan of one sequence's block. Rows of factors have no gaps: steps that do not count have none.
template <class T>
struct Scan {
  Steps steps;
  int64_t rows;         // steps that count
  int64_t group_width;  // functionals, padded
  int64_t functionals;  // and without padding
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

enum class Show { kEvery, kLast, kSome };  // which states of a word are levels

inline Show shown(const Word& word) {
  bool every = true, last = word.level[word.length - 1] >= 0;
  for (int64_t m = 0; m < word.length; ++m) {
    every = every && word.level[m] == word.level[0] + m && word.level[0] >= 0;
    last = last && (m == word.length - 1 || word.level[m] < 0);
  }
  return every ? Show::kEvery : last ? Show::kLast : Show::kSome;
}

template <Show S, int M>
inline bool is_shown(const Word& word, int m) {
  return S == Show::kEvery || (S == Show::kLast && m == M - 1) || (S == Show::kSome && word.level[m] >= 0);
}

template <bool Whole, class T>
inline void store_level(T* p, Vector<T> v, int64_t count) {
  if (Whole)
    store(p, v);
  else
    store_some(p, v, count);
}

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

// U vectors of functionals from column q on, through a word of M vectors. Without `Whole` the last lanes are padding.
template <class T, int M, Show S, int U, bool Whole>
void scan_word(const Scan<T>& scan, const Word& word, int64_t q) {
  constexpr int64_t lanes = Vectors<T>::lanes;
  const int64_t width = scan.group_width;
  Vector<T> base[M][U], change[M][U], value[M][U], bias[M][U];
  int64_t column[M], place[M];
  for (int m = 0; m < M; ++m) {
    column[m] = word.component[m] * width + q;
    place[m] = word.level[m] * scan.level_stride + q;
    for (int u = 0; u < U; ++u) {
      base[m][u] = value[m][u] = load_state<T>(scan.states + (word.first + m) * width + q + u * lanes);
      change[m][u] = Vector<T>{};
      bias[m][u] = load(scan.bias + column[m] + u * lanes);
    }
  }
  const T* row = scan.first_factors();
  T* out = scan.out ? scan.first_out() : nullptr;
  const int64_t row_stride = scan.factor_stride(), out_stride = scan.signed_out_stride();
  for (int64_t i = 0; i < scan.steps.count; ++i) {
    if (scan.steps.counts(i)) {
      for (int m = M - 1; m >= 0; --m)
        for (int u = 0; u < U; ++u) {
          const Vector<T> factor = load(row + column[m] + u * lanes) + bias[m][u];
          change[m][u] += m > 0 ? factor * value[m > 0 ? m - 1 : 0][u] : factor;
        }
      for (int m = 0; m < M; ++m)
        for (int u = 0; u < U; ++u) value[m][u] = base[m][u] + change[m][u];
      row += row_stride;
    }
    if (out) {
      for (int m = 0; m < M; ++m)
        if (is_shown<S, M>(word, m))
          for (int u = 0; u < U; ++u)
            store_level<Whole>(out + place[m] + u * lanes, value[m][u], scan.functionals - q);
      out += out_stride;
    }
  }
  for (int m = 0; m < M; ++m)
    for (int u = 0; u < U; ++u) add_change<T>(scan.states + (word.first + m) * width + q + u * lanes, change[m][u]);
}

// The same for a word of any length, with `memory` for three vectors per letter.
template <class T>
void scan_long_word(const Scan<T>& scan, const Word& word, int64_t q, Vector<T>* memory) {
  constexpr int64_t lanes = Vectors<T>::lanes;
  const int64_t width = scan.group_width, length = word.length;
  Vector<T>*base = memory, *change = base + length, *value = change + length;
  for (int64_t m = 0; m < length; ++m) {
    base[m] = value[m] = load_state<T>(scan.states + (word.first + m) * width + q);
    change[m] = Vector<T>{};
  }
  const T* row = scan.first_factors();
  T* out = scan.out ? scan.first_out() : nullptr;
  for (int64_t i = 0; i < scan.steps.count; ++i) {
    if (scan.steps.counts(i)) {
      for (int64_t m = length - 1; m >= 0; --m) {
        const int64_t column = word.component[m] * width + q;
        const Vector<T> factor = load(row + column) + load(scan.bias + column);
        change[m] += m > 0 ? factor * value[m - 1] : factor;
        value[m] = base[m] + change[m];
      }
      row += scan.factor_stride();
    }
    if (out) {
      for (int64_t m = 0; m < length; ++m)
        if (word.level[m] >= 0) {
          T* place = out + word.level[m] * scan.level_stride + q;
          store_some(place, value[m], std::min(lanes, scan.functionals - q));
        }
      out += scan.signed_out_stride();
    }
  }
  for (int64_t m = 0; m < length; ++m) add_change<T>(scan.states + (word.first + m) * width + q, change[m]);
}

// Few vectors have few sums to wait for, so several columns go side by side.
constexpr int columns_at_once(int length) { return length <= 2 ? 4 : length <= 4 ? 2 : 1; }

template <class T, int M, Show S>
void scan_columns(const Scan<T>& scan, const Word& word) {
  constexpr int64_t lanes = Vectors<T>::lanes;
  constexpr int U = columns_at_once(M);
  int64_t q = 0;
  for (; q + U * lanes <= scan.functionals; q += U * lanes) scan_word<T, M, S, U, true>(scan, word, q);
  for (; q + lanes <= scan.functionals; q += lanes) scan_word<T, M, S, 1, true>(scan, word, q);
  if (q < scan.functionals) scan_word<T, M, S, 1, false>(scan, word, q);
}

template <class T, int M>
void scan_shown(const Scan<T>& scan, const Word& word) {
  switch (shown(word)) {
    case Show::kEvery: return scan_columns<T, M, Show::kEvery>(scan, word);
    case Show::kLast: return scan_columns<T, M, Show::kLast>(scan, word);
    case Show::kSome: return scan_columns<T, M, Show::kSome>(scan, word);
  }
}

// Runs one word through a block; `memory` has room for three vectors per letter.
template <class T>
void scan_any_word(const Scan<T>& scan, const Word& word, Vector<T>* memory) {
  switch (word.length) {
    case 1: return scan_shown<T, 1>(scan, word);
    case 2: return scan_shown<T, 2>(scan, word);
    case 3: return scan_shown<T, 3>(scan, word);
    case 4: return scan_shown<T, 4>(scan, word);
    case 5: return scan_shown<T, 5>(scan, word);
    case 6: return scan_shown<T, 6>(scan, word);
    case 7: return scan_shown<T, 7>(scan, word);
    case 8: return scan_shown<T, 8>(scan, word);
    case 9: return scan_shown<T, 9>(scan, word);
    case 10: return scan_shown<T, 10>(scan, word);
    default:
      for (int64_t q = 0; q < scan.functionals; q += Vectors<T>::lanes) scan_long_word(scan, word, q, memory);
  }
}

// What the adjoint of a scan needs besides: `states` are those before the block.
template <class T>
struct Retrace {
  Scan<T> scan;          // without `out`
  const T* dout;         // derivatives by the levels of the first step in memory, or NULL
  double* adjoints;      // [positions, group width] derivatives by the states after the block, then before it
  T* dfactors;           // [rows, columns]
  bool shared;           // whether to add to what stands there
  Vector<T>* path;       // room for the states before every step of a word
  Vector<T>* memory;     // room for three vectors per letter
};

// One vector of functionals back through a word; with M = 0 through a word of any length.
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

// Padding, too: the products that follow read it.
template <class T, int M>
void retrace_columns(const Retrace<T>& back, const Word& word) {
  for (int64_t q = 0; q < back.scan.group_width; q += Vectors<T>::lanes) retrace_word<T, M>(back, word, q);
}

template <class T>
void retrace_any_word(const Retrace<T>& back, const Word& word) {
  switch (word.length) {
    case 1: return retrace_columns<T, 1>(back, word);
    case 2: return retrace_columns<T, 2>(back, word);
    case 3: return retrace_columns<T, 3>(back, word);
    case 4: return retrace_columns<T, 4>(back, word);
    case 5: return retrace_columns<T, 5>(back, word);
    case 6: return retrace_columns<T, 6>(back, word);
    case 7: return retrace_columns<T, 7>(back, word);
    case 8: return retrace_columns<T, 8>(back, word);
    case 9: return retrace_columns<T, 9>(back, word);
    case 10: return retrace_columns<T, 10>(back, word);
    default: return retrace_columns<T, 0>(back, word);
  }
}

}  // namespace
}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
