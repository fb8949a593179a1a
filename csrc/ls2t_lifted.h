// The recursion with any lift and decay, in doubles for any T: one word over a block of steps, and its adjoint.
#pragma once
#include "ls2t_scan.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {
namespace {

struct Lift {
  int64_t order;
  const double* coefficients;  // [order]
  const double* powers;        // [longest + 1, group width] powers of the decay
};

// The states of a word for one vector of functionals; `value[0]` is that of the empty word. Members are copies, because
// members behind references would have to be read again after every store.
template <class T>
struct LiftedWord {
  Scan<T> scan;
  Word word;
  Lift lift;
  int64_t q;

  Wide power(int64_t m) const { return load_wide(lift.powers + m * scan.group_width + q); }
  int64_t terms(int64_t m) const { return std::min(lift.order, m); }
  // The inner product of a row with vector m of the word, counted from 1.
  Wide factor(const T* row, int64_t m) const {
    const int64_t column = word.component[m - 1] * scan.group_width + q;
    return load_wide(row + column) + load_wide(scan.bias + column);
  }
  void read(const double* states, Wide* value) const {
    value[0] = fill(1.0);
    for (int64_t m = 1; m <= word.length; ++m)
      value[m] = load_wide(states + (word.first + m - 1) * scan.group_width + q);
  }
  void write(double* states, const Wide* value) const {
    for (int64_t m = 1; m <= word.length; ++m)
      store_wide(states + (word.first + m - 1) * scan.group_width + q, value[m]);
  }
  void advance(const T* row, Wide* value) const {
    for (int64_t m = word.length; m >= 1; --m) {
      Wide sum = power(m) * value[m], product = fill(1.0);
      for (int64_t j = 1; j <= terms(m); ++j) {
        product *= factor(row, m - j + 1);
        sum += lift.coefficients[j - 1] * product * (power(m - j) * value[m - j]);
      }
      value[m] = sum;
    }
  }
};

// Scans a block with one word; `value` has room for one vector per letter and one more.
template <class T>
void scan_lifted_word(const Scan<T>& scan, const Word& word, const Lift& lift, Wide* value) {
  for (int64_t q = 0; q < scan.functionals; q += kWideLanes) {
    const LiftedWord<T> lifted{scan, word, lift, q};
    lifted.read(scan.states, value);
    const T* row = scan.first_factors();
    const int64_t row_stride = scan.factor_stride();
    for (int64_t i = 0; i < scan.steps.count; ++i) {
      if (scan.steps.counts(i)) {
        lifted.advance(row, value);
        row += row_stride;
      }
      if (!scan.out) continue;
      T* out = scan.out + scan.steps.place(i) * scan.out_stride + q;
      for (int64_t m = 1; m <= word.length; ++m)
        if (word.level[m - 1] >= 0)
          store_wide_some(out + word.level[m - 1] * scan.level_stride, value[m], scan.functionals - q);
    }
    lifted.write(scan.states, value);
  }
}

// Gradients of coefficients and powers, with a sum for every functional, and scratch memory.
struct LiftGradients {
  double* coefficients;  // [order, group width]
  double* powers;        // [longest + 1, group width]
  Wide* path;            // [block, longest + 1]
  Wide* value;           // [longest + 1]
  Wide* adjoint;         // [longest + 1]
  Wide* tail;            // [order]
};

inline void add_to(double* sums, Wide part) { store_wide(sums, load_wide(sums) + part); }

// Adjoint of one step; `value` are the states before it. Term j of state m is c_j times the last j factors of its word
// times a decayed ancestor. `tail[j]` is what multiplies the last j + 1 factors, summed over all terms from j + 1 on;
// with it no division is needed.
template <class T>
void retreat(const LiftedWord<T>& lifted, const LiftGradients& out, const T* row, T* drow, const Wide* value) {
  const Word& word = lifted.word;
  const int64_t width = lifted.scan.group_width, q = lifted.q;
  const double* coefficients = lifted.lift.coefficients;
  for (int64_t m = 1; m <= word.length; ++m) {
    const int64_t terms = lifted.terms(m);
    for (int64_t j = terms - 1; j >= 0; --j) {
      out.tail[j] = coefficients[j] * (lifted.power(m - 1 - j) * value[m - 1 - j]);
      if (j + 1 < terms) out.tail[j] += lifted.factor(row, m - 1 - j) * out.tail[j + 1];
    }
    Wide flow = out.adjoint[m];
    for (int64_t j = 0; j < terms; ++j) {
      T* dfactor = drow + word.component[m - 1 - j] * width + q;
      store_wide(dfactor, load_wide(dfactor) + flow * out.tail[j]);
      flow *= lifted.factor(row, m - j);
      const int64_t ancestor = m - 1 - j;
      const Wide power = lifted.power(ancestor), scaled = coefficients[j] * flow;
      add_to(out.coefficients + j * width + q, flow * power * value[ancestor]);
      add_to(out.powers + ancestor * width + q, scaled * value[ancestor]);
      out.adjoint[ancestor] += scaled * power;
    }
    add_to(out.powers + m * width + q, out.adjoint[m] * value[m]);
    out.adjoint[m] *= lifted.power(m);
  }
}

template <class T>
void retrace_lifted_word(const Retrace<T>& back, const Word& word, const Lift& lift, const LiftGradients& out) {
  const Scan<T>& scan = back.scan;
  const int64_t row_stride = scan.factor_stride();
  for (int64_t q = 0; q < scan.functionals; q += kWideLanes) {
    const LiftedWord<T> lifted{scan, word, lift, q};
    const int64_t present = std::min(kWideLanes, scan.functionals - q);
    lifted.read(scan.states, out.value);
    const T* row = scan.first_factors();
    Wide* before = out.path;
    for (int64_t i = 0; i < scan.rows; ++i, row += row_stride, before += word.length + 1) {
      for (int64_t m = 0; m <= word.length; ++m) before[m] = out.value[m];
      lifted.advance(row, out.value);
    }
    lifted.read(back.adjoints, out.adjoint);
    T* drow = back.dfactors + (scan.steps.reverse ? 0 : (scan.rows - 1) * scan.columns);
    for (int64_t i = scan.steps.count - 1; i >= 0; --i) {
      const int64_t place = scan.steps.place(i) * scan.out_stride + q;
      for (int64_t m = 1; back.dout && m <= word.length; ++m)
        if (word.level[m - 1] >= 0)
          out.adjoint[m] += load_wide_some(back.dout + place + word.level[m - 1] * scan.level_stride, present);
      if (!scan.steps.counts(i)) continue;
      row -= row_stride;
      before -= word.length + 1;
      retreat(lifted, out, row, drow, before);
      drow -= row_stride;
    }
    lifted.write(back.adjoints, out.adjoint);
  }
}

}  // namespace
}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
