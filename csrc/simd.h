// SIMD vectors, by the compiler's vector extension, as wide as the registers of the instruction set.
#pragma once
#include <cstdint>
#include <utility>

#ifndef SEQ2TENS_ISA
#define SEQ2TENS_ISA generic
#endif
#ifndef SEQ2TENS_VECTOR_BYTES
#define SEQ2TENS_VECTOR_BYTES 16
#endif

namespace seq2tens {
namespace SEQ2TENS_ISA {

constexpr int64_t kVectorBytes = SEQ2TENS_VECTOR_BYTES;
constexpr int64_t kWideLanes = kVectorBytes / 8;  // lanes of a vector of doubles

// Functionals are padded to whole cache lines of float32, whatever the instruction set, so that tasks, and with them
// the order of every sum, only depend on shapes.
constexpr int64_t kFunctionalLanes = 16;

// `Packed` is the type of a vector in memory, at any address and of any effective type.
template <class T>
struct Vectors;

template <>
struct Vectors<float> {
  static constexpr int64_t lanes = kVectorBytes / 4;
  typedef float Vector __attribute__((vector_size(SEQ2TENS_VECTOR_BYTES)));
  typedef float Packed __attribute__((vector_size(SEQ2TENS_VECTOR_BYTES), aligned(4), may_alias));
  // with as many lanes as a vector of doubles
  typedef float Half __attribute__((vector_size(SEQ2TENS_VECTOR_BYTES / 2)));
  typedef float PackedHalf __attribute__((vector_size(SEQ2TENS_VECTOR_BYTES / 2), aligned(4), may_alias));
};

template <>
struct Vectors<double> {
  static constexpr int64_t lanes = kVectorBytes / 8;
  typedef double Vector __attribute__((vector_size(SEQ2TENS_VECTOR_BYTES)));
  typedef double Packed __attribute__((vector_size(SEQ2TENS_VECTOR_BYTES), aligned(8), may_alias));
};

template <class T>
using Vector = typename Vectors<T>::Vector;
using Wide = Vectors<double>::Vector;

template <class T>
inline Vector<T> load(const T* p) {
  return *reinterpret_cast<const typename Vectors<T>::Packed*>(p);
}

template <class T>
inline void store(T* p, Vector<T> v) {
  *reinterpret_cast<typename Vectors<T>::Packed*>(p) = v;
}

// Stores and loads the first `count` lanes of a vector; the other lanes of a loaded vector are 0.
template <class T>
inline void store_some(T* p, Vector<T> v, int64_t count) {
  for (int64_t i = 0; i < count; ++i) p[i] = v[i];
}

template <class T>
inline Vector<T> load_some(const T* p, int64_t count) {
  Vector<T> v = {};
  for (int64_t i = 0; i < count; ++i) v[i] = p[i];
  return v;
}

template <class T>
inline Vector<T> fill(T value) {
  return value - Vector<T>{};  // value + 0 could not be optimised away, because -0 + 0 is 0
}

// Vectors of doubles, loaded from and stored to numbers of any precision.
inline Wide load_wide(const double* p) { return load(p); }
inline void store_wide(double* p, Wide v) { store(p, v); }
inline Wide load_wide(const float* p) {
  const Vectors<float>::Half half = *reinterpret_cast<const Vectors<float>::PackedHalf*>(p);
  return __builtin_convertvector(half, Wide);
}
inline void store_wide(float* p, Wide v) {
  *reinterpret_cast<Vectors<float>::PackedHalf*>(p) = __builtin_convertvector(v, Vectors<float>::Half);
}
// The same for the first `count` lanes, or for all if there are fewer.
template <class T>
inline Wide load_wide_some(const T* p, int64_t count) {
  if (count >= kWideLanes) return load_wide(p);
  Wide v = {};
  for (int64_t i = 0; i < count; ++i) v[i] = p[i];
  return v;
}
template <class T>
inline void store_wide_some(T* p, Wide v, int64_t count) {
  if (count >= kWideLanes) return store_wide(p, v);
  for (int64_t i = 0; i < count; ++i) p[i] = static_cast<T>(v[i]);
}

// Exchanges lanes between two vectors, S out of every 2 S.
template <int64_t S, int64_t... K>
inline void exchange(Wide& a, Wide& b, std::integer_sequence<int64_t, K...>) {
#if defined(__clang__)
  const Wide low = __builtin_shufflevector(a, b, (K & S ? kWideLanes + K - S : K)...);
  b = __builtin_shufflevector(a, b, (K & S ? kWideLanes + K : K + S)...);
#else
  typedef int64_t Places __attribute__((vector_size(kVectorBytes)));
  const Wide low = __builtin_shuffle(a, b, Places{(K & S ? kWideLanes + K - S : K)...});
  b = __builtin_shuffle(a, b, Places{(K & S ? kWideLanes + K : K + S)...});
#endif
  a = low;
}

// Transposes a square of as many vectors as a vector has lanes.
template <int64_t S = 1>
inline void transpose(Wide* square) {
  if constexpr (S < kWideLanes) {
    for (int64_t i = 0; i < kWideLanes; ++i)
      if (!(i & S)) exchange<S>(square[i], square[i + S], std::make_integer_sequence<int64_t, kWideLanes>());
    transpose<2 * S>(square);
  }
}

template <class T>
inline int64_t round_up(T count, int64_t unit) {
  return (count + unit - 1) / unit * unit;
}

}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
