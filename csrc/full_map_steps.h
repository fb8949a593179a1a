// One step of the full map and its adjoint, for one sequence or for eight side by side.
//
// A state holds the levels 0, 1, … one after the other in doubles; every coordinate is one number, or kSide numbers of
// as many sequences. Words are stored with their newest letter first: the place of (a_1, …, a_m) in its level is
// a_m d^(m-1) + … + a_1, so multiplying by a step runs over long contiguous pieces.
#pragma once
#include <algorithm>

#include "simd.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {
namespace full_map_detail {
namespace {

constexpr int64_t kSide = 8;  // sequences side by side

// The sum of all lanes, by halves.
template <class T>
inline T total(Vector<T> v) {
  for (int64_t half = Vectors<T>::lanes / 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i) v[i] += v[i + half];
  return v[0];
}

// Eight doubles, in as many registers as that takes.
struct Eight {
  static constexpr int64_t parts = kSide / kWideLanes;
  Wide part[parts];
  Eight& operator+=(const Eight& other) {
    for (int64_t i = 0; i < parts; ++i) part[i] += other.part[i];
    return *this;
  }
  friend Eight operator*(const Eight& a, const Eight& b) {
    Eight product;
    for (int64_t i = 0; i < parts; ++i) product.part[i] = a.part[i] * b.part[i];
    return product;
  }
};

// Loops are written once, over units of neighbouring numbers; a letter of a step multiplies a whole unit.
struct SideUnit {  // one coordinate of eight sequences, each with its own letter
  typedef Eight Value;
  static constexpr int64_t size = kSide;
  static Eight read(const double* p) {
    Eight v;
    for (int64_t i = 0; i < Eight::parts; ++i) v.part[i] = load(p + i * kWideLanes);
    return v;
  }
  static void write(double* p, const Eight& v) {
    for (int64_t i = 0; i < Eight::parts; ++i) store(p + i * kWideLanes, v.part[i]);
  }
  static Eight constant(double c) {
    Eight v;
    for (int64_t i = 0; i < Eight::parts; ++i) v.part[i] = fill(c);
    return v;
  }
  static Eight letter(const double* x, int64_t j) { return read(x + j * kSide); }
  static void add_to_letter(double* x, int64_t j, Eight v) { write(x + j * kSide, v += read(x + j * kSide)); }
};
template <class T>
struct RowUnit {  // some coordinates of one sequence
  typedef Vector<T> Value;
  static constexpr int64_t size = Vectors<T>::lanes;
  static Value read(const T* p) { return load(p); }
  static void write(T* p, Value v) { store(p, v); }
  template <class N>
  static void write(N* p, Value v) { store_wide(p, v); }
  static Value constant(T c) { return fill(c); }
  static Value letter(const T* x, int64_t j) { return fill(x[j]); }
  static void add_to_letter(T* x, int64_t j, Value v) { x[j] += total<T>(v); }
};
template <class T>
struct OneUnit {  // one of them
  typedef T Value;
  static constexpr int64_t size = 1;
  static T read(const T* p) { return *p; }
  template <class N>
  static void write(N* p, T v) { *p = static_cast<N>(v); }
  static T constant(T c) { return c; }
  static T letter(const T* x, int64_t j) { return x[j]; }
  static void add_to_letter(T* x, int64_t j, T v) { x[j] += v; }
};

// Calls run(unit, begin, end) for the ranges of `size` numbers that consist of units of one kind.
template <bool Side, class T, class Run>
inline void over_units(int64_t size, const Run& run) {
  if constexpr (Side) {
    run(SideUnit{}, int64_t{0}, size);
  } else {
    const int64_t whole = size / RowUnit<T>::size * RowUnit<T>::size;
    run(RowUnit<T>{}, int64_t{0}, whole);
    run(OneUnit<T>{}, whole, size);
  }
}

// target = a · source + b · other, where `target` may be one of them.
template <class N>
inline void combine(double a, const double* source, double b, const double* other, N* target, int64_t count) {
  int64_t q = 0;
  for (; q + kWideLanes <= count; q += kWideLanes) store_wide(target + q, a * load(source + q) + b * load(other + q));
  for (; q < count; ++q) target[q] = static_cast<N>(a * source[q] + b * other[q]);
}

inline double dot(const double* a, const double* b, int64_t count) {
  Wide even = {}, odd = {};
  int64_t q = 0;
  for (; q + 2 * kWideLanes <= count; q += 2 * kWideLanes) {
    even += load(a + q) * load(b + q);
    odd += load(a + q + kWideLanes) * load(b + q + kWideLanes);
  }
  double sum = total<double>(even + odd);
  for (; q < count; ++q) sum += a[q] * b[q];
  return sum;
}

// Steps x_k and factors h_k of a sum of h_k ⊗ x_k. All at once, sums stay in registers for several of them.
template <class T>
struct Products {
  int64_t steps;
  int64_t dim;
  const T* x;
  int64_t x_stride;
  const T* h;
  int64_t h_stride;
  int64_t size;  // numbers of a factor
};

constexpr int kStepsAtOnce = 4;
constexpr int kLettersAtOnce = kWideLanes >= 8 ? 2 : 1;
constexpr int kContractedAtOnce = kWideLanes >= 8 ? 4 : 2;  // units, or letters

// K steps from step k on, J letters from letter j on.
template <class Unit, int J, int K>
inline void add_tile(const Products<double>& p, int64_t k, int64_t j, int64_t begin, int64_t end, const double* before,
                     double* after) {
  typename Unit::Value letter[J][K];
  for (int u = 0; u < J; ++u)
    for (int v = 0; v < K; ++v) letter[u][v] = Unit::letter(p.x + (k + v) * p.x_stride, j + u);
  for (int64_t q = begin; q < end; q += Unit::size) {
    typename Unit::Value factor[K];
    for (int v = 0; v < K; ++v) factor[v] = Unit::read(p.h + (k + v) * p.h_stride + q);
    for (int u = 0; u < J; ++u) {
      typename Unit::Value sum = Unit::read(before + (j + u) * p.size + q);
      for (int v = 0; v < K; ++v) sum += factor[v] * letter[u][v];
      Unit::write(after + (j + u) * p.size + q, sum);
    }
  }
}

template <bool Side, int K>
inline void add_some_products(const Products<double>& p, int64_t k, const double* before, double* after) {
  over_units<Side, double>(p.size, [&](auto unit, int64_t begin, int64_t end) {
    constexpr int J = kLettersAtOnce;
    int64_t j = 0;
    for (; j + J <= p.dim; j += J) add_tile<decltype(unit), J, K>(p, k, j, begin, end, before, after);
    for (; j < p.dim; ++j) add_tile<decltype(unit), 1, K>(p, k, j, begin, end, before, after);
  });
}

// after = before + sum of h_k ⊗ x_k; both may be the same.
template <bool Side>
void add_products(const Products<double>& p, const double* before, double* after) {
  int64_t k = 0;
  for (; k + kStepsAtOnce <= p.steps; k += kStepsAtOnce) {
    add_some_products<Side, kStepsAtOnce>(p, k, before, after);
    before = after;
  }
  for (; k < p.steps; ++k) {
    add_some_products<Side, 1>(p, k, before, after);
    before = after;
  }
}

// P units of the derivatives by K factors: g contracted with their steps.
template <class Unit, int P, int K, class T>
inline void contract_tile(const Products<T>& p, int64_t k, int64_t q, const T* g, T* dh) {
  typename Unit::Value sum[P][K] = {};
  for (int64_t j = 0; j < p.dim; ++j) {
    typename Unit::Value piece[P];
    for (int u = 0; u < P; ++u) piece[u] = Unit::read(g + j * p.size + q + u * Unit::size);
    for (int v = 0; v < K; ++v) {
      const typename Unit::Value letter = Unit::letter(p.x + (k + v) * p.x_stride, j);
      for (int u = 0; u < P; ++u) sum[u][v] += piece[u] * letter;
    }
  }
  for (int u = 0; u < P; ++u)
    for (int v = 0; v < K; ++v) Unit::write(dh + (k + v) * p.h_stride + q + u * Unit::size, sum[u][v]);
}

// J letters of the derivatives by K steps: g contracted with their factors.
template <class Unit, int J, int K, class T>
inline void contract_letters(const Products<T>& p, int64_t k, int64_t j, int64_t begin, int64_t end, const T* g,
                             T* dx) {
  typename Unit::Value sum[J][K] = {};
  for (int64_t q = begin; q < end; q += Unit::size) {
    typename Unit::Value piece[J];
    for (int u = 0; u < J; ++u) piece[u] = Unit::read(g + (j + u) * p.size + q);
    for (int v = 0; v < K; ++v) {
      const typename Unit::Value factor = Unit::read(p.h + (k + v) * p.h_stride + q);
      for (int u = 0; u < J; ++u) sum[u][v] += piece[u] * factor;
    }
  }
  for (int u = 0; u < J; ++u)
    for (int v = 0; v < K; ++v) Unit::add_to_letter(dx + (k + v) * p.x_stride, j + u, sum[u][v]);
}

template <bool Side, int K, class T>
inline void contract_some(const Products<T>& p, int64_t k, const T* g, T* dh, T* dx) {
  over_units<Side, T>(p.size, [&](auto unit, int64_t begin, int64_t end) {
    typedef decltype(unit) Unit;
    constexpr int J = kContractedAtOnce, P = kContractedAtOnce;
    int64_t q = begin, j = 0;
    for (; q + P * Unit::size <= end; q += P * Unit::size) contract_tile<Unit, P, K>(p, k, q, g, dh);
    for (; q < end; q += Unit::size) contract_tile<Unit, 1, K>(p, k, q, g, dh);
    for (; j + J <= p.dim; j += J) contract_letters<Unit, J, K>(p, k, j, begin, end, g, dx);
    for (; j < p.dim; ++j) contract_letters<Unit, 1, K>(p, k, j, begin, end, g, dx);
  });
}

// Adjoint of `add_products`: dh_k = g contracted with x_k over the newest letter, dx_k += g contracted with h_k.
template <bool Side, class T>
void contract_products(const Products<T>& p, const T* g, T* dh, T* dx) {
  int64_t k = 0;
  for (; k + kStepsAtOnce <= p.steps; k += kStepsAtOnce) contract_some<Side, kStepsAtOnce>(p, k, g, dh, dx);
  for (; k < p.steps; ++k) contract_some<Side, 1>(p, k, g, dh, dx);
}

// Where levels begin, counted in coordinates.
struct Levels {
  int64_t dim;
  int64_t order;
  const int64_t* start;  // [order + 2]
  int64_t count(int64_t m) const { return start[m + 1] - start[m]; }
  int64_t lower() const { return start[order]; }  // coordinates below the top level
  int64_t size() const { return start[order + 1]; }
};

// The lift's coefficients, and their derivatives if these are wanted.
struct Lift {
  int64_t order;
  const double* coefficients;
  double* gradients;
  double operator[](int64_t j) const { return coefficients[j - 1]; }  // c_j
};

// A step adds h ⊗ x to level m of the state s, with
// h = c_1 S_(m-1) + (c_2 S_(m-2) + (c_3 S_(m-3) + …) ⊗ x) ⊗ x.
template <bool Side>
struct Step {
  static constexpr int64_t columns = Side ? kSide : 1;
  const Levels& levels;
  const Lift& lift;
  double* chain;   // [lower] the inner brackets, each at its level
  double* dchain;  // [lower] derivatives by them

  int64_t place(int64_t m) const { return levels.start[m] * columns; }
  int64_t numbers(int64_t m) const { return levels.count(m) * columns; }
  int64_t lowest(int64_t m) const { return std::max<int64_t>(1, m - lift.order); }
  Products<double> product(const double* h, int64_t m, const double* x) const {
    return {1, levels.dim, x, 0, h, 0, numbers(m - 1)};
  }

  // target = inner ⊗ x + c · level k of s
  template <class N>
  void extend(const double* inner, int64_t k, const double* x, double c, const double* level, N* target) const {
    const int64_t size = numbers(k - 1);
    over_units<Side, double>(size, [&](auto unit, int64_t begin, int64_t end) {
      typedef decltype(unit) Unit;
      const typename Unit::Value weight = Unit::constant(c);
      for (int64_t j = 0; j < levels.dim; ++j) {
        const typename Unit::Value letter = Unit::letter(x, j);
        for (int64_t q = begin; q < end; q += Unit::size) {
          typename Unit::Value sum = weight * Unit::read(level + j * size + q);
          sum += Unit::read(inner + q) * letter;
          Unit::write(target + j * size + q, sum);
        }
      }
    });
  }

  // Puts the innermost bracket of h for level m >= 2 at `target`.
  template <class N>
  void find_innermost(int64_t m, const double* s, const double* x, N* target) const {
    const int64_t low = lowest(m);
    // S_0 = 1 enters as a multiple of x, if there are as many coefficients
    const bool whole = lift.order >= m;
    combine(lift[m - low], s + place(low), whole ? lift[m] : 0.0, whole ? x : s + place(low), target, numbers(low));
  }

  // Puts the inner brackets of h for level m into the chain.
  void find_brackets(int64_t m, const double* s, const double* x) const {
    const int64_t low = lowest(m);
    if (low < m - 1) find_innermost(m, s, x, chain + place(low));
    for (int64_t k = low + 1; k < m - 1; ++k)
      extend(chain + place(k - 1), k, x, lift[m - k], s + place(k), chain + place(k));
  }

  // Puts h for level m at `last`, and its inner brackets into the chain.
  template <class N>
  void find_factor(int64_t m, const double* s, const double* x, N* last) const {
    if (m == 1) return std::fill(last, last + columns, static_cast<N>(lift[1]));
    if (lowest(m) == m - 1) return find_innermost(m, s, x, last);
    find_brackets(m, s, x);
    extend(chain + place(m - 2), m - 1, x, lift[1], s + place(m - 1), last);
  }

  // Levels 1 to `order` of the state after a step; it may be the one before.
  void advance(const double* before, double* after, const double* x, int64_t order) const {
    for (int64_t m = order; m >= 2; --m) {  // each level needs the old values of those below
      double* h = chain + place(m - 1);
      find_factor(m, before, x, h);
      add_some_products<Side, 1>(product(h, m, x), 0, before + place(m), after + place(m));
    }
    if (order >= 1) combine(lift[1], x, 1.0, before + place(1), after + place(1), numbers(1));
  }

  // Adjoint of `find_factor`: from `flow`, by h, to the state, the step and the coefficients.
  void unwind(int64_t m, const double* s, const double* x, const double* flow, double* g, double* dx) const {
    const int64_t low = lowest(m);
    for (int64_t k = m - 1; k >= low; --k) {
      if (lift.gradients) lift.gradients[m - k - 1] += dot(s + place(k), flow, numbers(k));
      combine(lift[m - k], flow, 1.0, g + place(k), g + place(k), numbers(k));
      if (k > low) {
        double* dinner = dchain + place(k - 1);
        contract_some<Side, 1>(product(chain + place(k - 1), k, x), 0, flow, dinner, dx);
        flow = dinner;
      }
    }
    if (m == 1)
      for (int64_t q = 0; lift.gradients && q < columns; ++q) lift.gradients[0] += flow[q];
    else if (lift.order >= m)
      add_letters(m, x, flow, dx);
  }

  // Adjoint of c_m x.
  void add_letters(int64_t m, const double* x, const double* flow, double* dx) const {
    combine(lift[m], flow, 1.0, dx, dx, numbers(1));
    if (lift.gradients) lift.gradients[m - 1] += dot(x, flow, numbers(1));
  }

  // Adjoint of `advance`: g is by the state after the step, then by s, the one before. dx adds up.
  void retreat(double* g, const double* s, const double* x, double* dx, int64_t order) const {
    if (order >= 1) add_letters(1, x, g + place(1), dx);
    for (int64_t m = 2; m <= order; ++m) {  // a level is read before those above add to it
      double *h = chain + place(m - 1), *dh = dchain + place(m - 1);
      find_factor(m, s, x, h);
      contract_some<Side, 1>(product(h, m, x), 0, g + place(m), dh, dx);
      unwind(m, s, x, dh, g, dx);
    }
  }
};

}  // namespace
}  // namespace full_map_detail
}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
