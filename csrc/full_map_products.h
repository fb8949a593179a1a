// Sums of products h ⊗ x of the full map, and their adjoints, for one sequence or for eight interleaved ones.
#pragma once
#include <algorithm>
#include <type_traits>

#include "simd.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {
namespace full_map_detail {
namespace {

constexpr int64_t kSide = 8;  // interleaved sequences

// Access to a number or a vector of numbers, so that code can treat both alike.
template <class V, class N>
inline V get(const N* p) {
  if constexpr (std::is_same<V, N>::value)
    return *p;
  else
    return load(p);
}
template <class M>
inline void put(M* p, double v) { *p = static_cast<M>(v); }
template <class M>
inline void put(M* p, Wide v) { store_wide(p, v); }

// The sum of all lanes, by halves.
template <class N, class V>
inline N total(V v) {
  if constexpr (!std::is_same<V, N>::value) {
    for (int64_t half = Vectors<N>::lanes / 2; half > 0; half /= 2)
      for (int64_t i = 0; i < half; ++i) v[i] += v[i + half];
    return v[0];
  } else {
    return v;
  }
}

// Calls run(place, part) for the parts of a vector, converted to doubles.
template <class Run>
inline void widen(double v, const Run& run) { run(0, v); }
template <class Run>
inline void widen(Wide v, const Run& run) { run(0, v); }
template <class Run>
inline void widen(Vector<float> v, const Run& run) {
  float lanes[Vectors<float>::lanes];
  store(lanes, v);
  for (int64_t i = 0; i < Vectors<float>::lanes; i += kWideLanes) run(i, load_wide(lanes + i));
}

// Loops are written once, over units of adjacent numbers, in registers V that hold some N each. A unit is either one
// coordinate of eight sequences or several coordinates of one sequence. A letter of a step multiplies a whole unit;
// each of eight sequences has its own letter.
template <class N, class V, bool Side>
struct Unit {
  static constexpr int64_t lanes = sizeof(V) / sizeof(N), parts = Side ? kSide / lanes : 1, size = parts * lanes;
  V part[parts];

  static Unit read(const N* p) {
    Unit unit;
    for (int64_t i = 0; i < parts; ++i) unit.part[i] = get<V>(p + i * lanes);
    return unit;
  }
  static Unit letter(const N* x, int64_t j) { return Side ? read(x + j * size) : Unit{x[j] - V{}}; }
  void add_product(const Unit& a, const Unit& b) {
    for (int64_t i = 0; i < parts; ++i) part[i] += a.part[i] * b.part[i];
  }
  void write(double* p) const {
    for (int64_t i = 0; i < parts; ++i) widen(part[i], [&](int64_t k, auto v) { put(p + i * lanes + k, v); });
  }
  // after = weight · before + this
  template <class M>
  void add_to(double weight, const double* before, M* after) const {
    for (int64_t i = 0; i < parts; ++i)
      widen(part[i], [&](int64_t k, auto v) {
        const int64_t place = i * lanes + k;
        put(after + place, weight * get<decltype(v)>(before + place) + v);
      });
  }
  void add_to_letter(double* x, int64_t j) const {
    if constexpr (Side)
      add_to(1.0, x + j * size, x + j * size);
    else
      x[j] += total<N>(part[0]);
  }
};

struct Span {
  int64_t begin, end;
};

// Calls run(unit, span) for the part of `size` numbers that consists of whole vectors, then for the rest.
template <bool Side, class N, class Run>
inline void over_units(int64_t size, const Run& run) {
  constexpr int64_t lanes = Side ? 1 : Vectors<N>::lanes;
  const int64_t whole = size / lanes * lanes;
  if (whole > 0) run(Unit<N, Vector<N>, Side>{}, Span{0, whole});
  if constexpr (!Side)
    if (whole < size) run(Unit<N, N, false>{}, Span{whole, size});
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

// The steps x_k and the factors h_k of a sum of products h_k ⊗ x_k.
template <class N>
struct Products {
  int64_t steps;
  int64_t dim;
  const N* x;
  int64_t x_stride;
  const N* h;
  int64_t h_stride;
  int64_t size;  // numbers of a factor
  Products from(int64_t k) const { return {steps - k, dim, x + k * x_stride, x_stride, h + k * h_stride, h_stride, size}; }
};

// Keeps gcc 12 from vectorising loops over tiles of single numbers: its vectors would read a row beyond the last one.
// Tiles of vectors are not affected.
inline void keep_scalar() { asm volatile(""); }

constexpr int kTile = kWideLanes >= 8 ? 4 : 2;  // letters or units whose sums stay in registers

// Calls run(count, place) for `Most` units at a time, then for half as many, and so on.
template <int Most, class Run>
inline void over_tiles(Span span, int64_t size, const Run& run) {
  int64_t q = span.begin;
  for (; q + Most * size <= span.end; q += Most * size) run(std::integral_constant<int, Most>(), q);
  if constexpr (Most > 1) over_tiles<Most / 2>({q, span.end}, size, run);
}

// Adds the products of J letters, from letter j on, and U units of the factors, from number q on.
template <class Unit, int J, int U, class N>
inline void add_tile(Products<N> p, int64_t j, int64_t q, double* target) {
  Unit sum[J][U] = {};
  for (int64_t k = 0; k < p.steps; ++k) {
    keep_scalar();
    Unit factor[U];
    for (int v = 0; v < U; ++v) factor[v] = Unit::read(p.h + k * p.h_stride + q + v * Unit::size);
    for (int u = 0; u < J; ++u) {
      const Unit letter = Unit::letter(p.x + k * p.x_stride, j + u);
      for (int v = 0; v < U; ++v) sum[u][v].add_product(factor[v], letter);
    }
  }
  for (int u = 0; u < J; ++u)
    for (int v = 0; v < U; ++v) {
      double* place = target + (j + u) * p.size + q + v * Unit::size;
      sum[u][v].add_to(1.0, place, place);
    }
}

// target += sum of h_k ⊗ x_k, summed in N.
template <bool Side, class N>
void add_products(Products<N> p, double* target) {
  over_units<Side, N>(p.size, [=](auto unit, Span span) {
    over_tiles<kTile>(span, unit.size, [=](auto units, int64_t q) {
      over_tiles<Side ? kTile : 4>({0, p.dim}, 1, [=](auto letters, int64_t j) {
        add_tile<decltype(unit), letters, units>(p, j, q, target);
      });
    });
  });
}

// Adds the products of J letters, from letter j on, and all units of one factor.
template <class Unit, int J, class M>
inline void add_rows(Products<double> p, int64_t j, Span span, double weight, const double* before, M* after) {
  Unit letter[J];
  for (int u = 0; u < J; ++u) letter[u] = Unit::letter(p.x, j + u);
  for (int64_t q = span.begin; q < span.end; q += Unit::size) {
    keep_scalar();
    const Unit factor = Unit::read(p.h + q);
    for (int u = 0; u < J; ++u) {
      const int64_t place = (j + u) * p.size + q;
      Unit product = {};
      product.add_product(factor, letter[u]);
      product.add_to(weight, before + place, after + place);
    }
  }
}

// after = weight · before + h ⊗ x for one step; `before` and `after` may be the same.
template <bool Side, class M>
inline void add_product(Products<double> p, double weight, const double* before, M* after) {
  over_units<Side, double>(p.size, [=](auto unit, Span span) {
    over_tiles<kTile / 2>({0, p.dim}, 1, [=](auto letters, int64_t j) {
      add_rows<decltype(unit), letters>(p, j, span, weight, before, after);
    });
  });
}

// Finds U units of the gradients of the first K factors: g contracted with their steps.
template <class Unit, int U, int K, class N>
inline void contract_tile(Products<N> p, int64_t q, const N* g, double* dh) {
  Unit sum[U][K] = {};
  for (int64_t j = 0; j < p.dim; ++j) {
    keep_scalar();
    Unit piece[U];
    for (int u = 0; u < U; ++u) piece[u] = Unit::read(g + j * p.size + q + u * Unit::size);
    for (int v = 0; v < K; ++v) {
      const Unit letter = Unit::letter(p.x + v * p.x_stride, j);
      for (int u = 0; u < U; ++u) sum[u][v].add_product(piece[u], letter);
    }
  }
  for (int u = 0; u < U; ++u)
    for (int v = 0; v < K; ++v) sum[u][v].write(dh + v * p.h_stride + q + u * Unit::size);
}

// Finds J letters of the gradients of the first K steps: g contracted with their factors.
template <class Unit, int J, int K, class N>
inline void contract_letters(Products<N> p, int64_t j, Span span, const N* g, double* dx) {
  Unit sum[J][K] = {};
  for (int64_t q = span.begin; q < span.end; q += Unit::size) {
    keep_scalar();
    Unit piece[J];
    for (int u = 0; u < J; ++u) piece[u] = Unit::read(g + (j + u) * p.size + q);
    for (int v = 0; v < K; ++v) {
      const Unit factor = Unit::read(p.h + v * p.h_stride + q);
      for (int u = 0; u < J; ++u) sum[u][v].add_product(piece[u], factor);
    }
  }
  for (int u = 0; u < J; ++u)
    for (int v = 0; v < K; ++v) sum[u][v].add_to_letter(dx + v * p.x_stride, j + u);
}

template <bool Side, int K, class N>
inline void contract_some(Products<N> p, const N* g, double* dh, double* dx) {
  over_units<Side, N>(p.size, [=](auto unit, Span span) {
    typedef decltype(unit) Unit;
    over_tiles<kTile>(span, Unit::size, [=](auto units, int64_t q) { contract_tile<Unit, units, K>(p, q, g, dh); });
    over_tiles<kTile>({0, p.dim}, 1, [=](auto letters, int64_t j) {
      contract_letters<Unit, letters, K>(p, j, span, g, dx);
    });
  });
}

// Adjoint of `add_products`: dh_k = g contracted with x_k over the newest letter, dx_k += g contracted with h_k.
template <bool Side, class N>
void contract_products(Products<N> p, const N* g, double* dh, double* dx) {
  over_tiles<4>({0, p.steps}, 1, [=](auto steps, int64_t k) {
    contract_some<Side, steps>(p.from(k), g, dh + k * p.h_stride, dx + k * p.x_stride);
  });
}

}  // namespace
}  // namespace full_map_detail
}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
