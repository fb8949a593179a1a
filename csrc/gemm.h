// Matrix products. Every element is one sum from the first term to the last, with fused multiply-adds in T, so its bits
// only depend on its row and its column, not on neighbours, threads, alignment or the number of lanes of a vector.
//
// Factors are packed into panels, as in BLIS: `b` into columns as wide as a tile, `a` into rows as high as a tile. In
// both, the numbers for one step of the sum are adjacent. A tile of the result stays in registers.
#pragma once
#include "parallel.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {

// A row-major matrix with rows `stride` numbers apart, or the transpose of one.
template <class T>
struct Matrix {
  T* data;
  int64_t stride;
  bool transposed = false;
  T& at(int64_t row, int64_t column) const {
    return transposed ? data[column * stride + row] : data[row * stride + column];
  }
};

struct ProductSize {
  int64_t rows, columns, inner;
};

// The largest tile whose sums fit into the registers, of which there are 32 or 16.
constexpr int64_t kTileRows = kVectorBytes == 64 ? 12 : 6, kTileVectors = 2;
template <class T>
constexpr int64_t tile_columns = kTileVectors * Vectors<T>::lanes;

template <class T>
int64_t packed_size(int64_t columns, int64_t inner) {
  return round_up(columns, tile_columns<T>) * inner;
}

// Packs the `count` rows of a matrix, each with `inner` numbers, into panels of `height` rows; the last panel is padded
// with zeros.
template <class T>
void pack_panels(Matrix<const T> matrix, int64_t count, int64_t inner, int64_t height, T* packed) {
  for (int64_t first = 0; first < count; first += height, packed += height * inner) {
    const int64_t here = std::min(height, count - first);
    for (int64_t k = 0; k < inner; ++k) {
      T* target = packed + k * height;
      for (int64_t i = 0; i < here; ++i) target[i] = matrix.at(first + i, k);
      std::fill(target + here, target + height, T(0));
    }
  }
}

// Packs `b` in the order in which `multiply_packed` reads it.
template <class T>
void pack(Matrix<const T> b, int64_t columns, int64_t inner, T* packed) {
  b.transposed = !b.transposed;
  pack_panels(b, columns, inner, tile_columns<T>, packed);
}

// A tile of the result: the panels whose product it is, and its place in the result.
template <class T>
struct Tile {
  const T *a, *b;
  int64_t inner;
  T beta;
  Matrix<T> place;
  int64_t columns;
};

// Computes the first `R` rows of a tile.
template <class T, int R>
void multiply_tile(const Tile<T>& tile) {
  constexpr int64_t lanes = Vectors<T>::lanes;
  Vector<T> sum[R][kTileVectors] = {};
  const T *a = tile.a, *b = tile.b;
  for (int64_t k = 0; k < tile.inner; ++k, a += kTileRows, b += tile_columns<T>)
    for (int r = 0; r < R; ++r)
      for (int v = 0; v < kTileVectors; ++v) sum[r][v] += a[r] * load(b + v * lanes);
  for (int r = 0; r < R; ++r)
    for (int v = 0; v < kTileVectors; ++v) {
      T* target = tile.place.data + r * tile.place.stride + v * lanes;
      const int64_t count = std::min(lanes, tile.columns - v * lanes);
      if (count == lanes)
        store(target, tile.beta == 0 ? sum[r][v] : sum[r][v] + load(target));
      else
        for (int64_t i = 0; i < count; ++i) target[i] = tile.beta == 0 ? sum[r][v][i] : sum[r][v][i] + target[i];
    }
}

template <class T, int R = kTileRows>
void multiply_rows(int64_t rows, const Tile<T>& tile) {
  if constexpr (R > 1)
    if (rows < R) return multiply_rows<T, R - 1>(rows, tile);
  multiply_tile<T, R>(tile);
}

// result = a · b + beta · result, where beta is 0 or 1 and `b` is packed.
template <class T>
void multiply_packed(ProductSize size, Matrix<const T> a, const T* b, T beta, Matrix<T> result) {
  constexpr int64_t kRowsAtOnce = 16 * kTileRows;  // packed rows of `a`, which stay in the L2 cache of a core
  Frame frame;
  T* packed = frame.take<T>(kRowsAtOnce * size.inner);
  for (int64_t first = 0; first < size.rows; first += kRowsAtOnce) {
    const int64_t rows = std::min(kRowsAtOnce, size.rows - first);
    pack_panels(Matrix<const T>{&a.at(first, 0), a.stride, a.transposed}, rows, size.inner, kTileRows, packed);
    for (int64_t column = 0; column < size.columns; column += tile_columns<T>)
      for (int64_t row = 0; row < rows; row += kTileRows)
        multiply_rows<T>(std::min(kTileRows, rows - row),
                         {packed + row * size.inner, b + column * size.inner, size.inner, beta,
                          {&result.at(first + row, column), result.stride},
                          std::min(tile_columns<T>, size.columns - column)});
  }
}

template <class T>
void multiply(ProductSize size, Matrix<const T> a, Matrix<const T> b, T beta, Matrix<T> result) {
  Frame frame;
  T* packed = frame.take<T>(packed_size<T>(size.columns, size.inner));
  pack(b, size.columns, size.inner, packed);
  multiply_packed(size, a, static_cast<const T*>(packed), beta, result);
}

}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
