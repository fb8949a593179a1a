// Matrix products by the caller's BLAS, which hands over its functions once.
#pragma once
#include <cstdint>

#include "seq2tens.h"
#include "simd.h"

namespace seq2tens {

extern seq2tens_blas blas;  // set by seq2tens_set_blas, see library.cpp

namespace SEQ2TENS_ISA {

enum class Transpose : char { kNo = 'N', kYes = 'T' };

// A matrix in rows, `stride` numbers apart.
template <class T>
struct Matrix {
  T* data;
  int64_t stride;
  Transpose transpose = Transpose::kNo;
};

inline void call_blas(const char* ta, const char* tb, const int* m, const int* n, const int* k, const float* alpha,
                      const float* a, const int* lda, const float* b, const int* ldb, const float* beta, float* c,
                      const int* ldc) {
  blas.sgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

inline void call_blas(const char* ta, const char* tb, const int* m, const int* n, const int* k, const double* alpha,
                      const double* a, const int* lda, const double* b, const int* ldb, const double* beta, double* c,
                      const int* ldc) {
  blas.dgemm(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

struct ProductSize {
  int64_t rows, columns, inner;
};

// BLAS wants strides of at least 1, which matrices without columns do not have.
template <class T>
inline void clear_empty_product(ProductSize size, T beta, Matrix<T> result) {
  for (int64_t i = 0; beta == 0 && i < size.rows; ++i)
    for (int64_t j = 0; j < size.columns; ++j) result.data[i * result.stride + j] = 0;
}

// result = a · b + beta · result. Fortran's columns are our rows, so the factors change places.
template <class T>
inline void multiply(ProductSize size, Matrix<const T> a, Matrix<const T> b, T beta, Matrix<T> result) {
  if (size.rows == 0 || size.columns == 0) return;
  if (size.inner == 0) return clear_empty_product(size, beta, result);
  const int rows = static_cast<int>(size.rows), columns = static_cast<int>(size.columns);
  const int inner = static_cast<int>(size.inner);
  const int stride_a = static_cast<int>(a.stride), stride_b = static_cast<int>(b.stride);
  const int stride = static_cast<int>(result.stride);
  const char transpose_a = static_cast<char>(a.transpose), transpose_b = static_cast<char>(b.transpose);
  const T one = 1;
  call_blas(&transpose_b, &transpose_a, &columns, &rows, &inner, &one, b.data, &stride_b, a.data, &stride_a, &beta,
            result.data, &stride);
}

}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
