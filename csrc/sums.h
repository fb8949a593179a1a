// Long sums: short partial sums in T, their total in doubles.
#pragma once
#include "gemm.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {
namespace {

// The sum, over many calls, of the transpose of some rows times other rows. The products of a few hundred rows are
// summed in T, then added to a sum in doubles.
template <class T>
class ProductSum {
 public:
  struct Size {
    int64_t features, columns;
  };
  // Rows of the left factor are `stride` numbers apart, and may overlap.
  ProductSum(double* total, Size size, int64_t stride, Frame& frame)
      : total_(total), features_(size.features), columns_(size.columns), stride_(stride),
        part_(frame.take<T>(features_ * columns_)) {}

  void add(const T* rows, const T* others, int64_t count) {
    if (count == 0) return;
    multiply<T>({features_, columns_, count}, {rows, stride_, true}, {others, columns_},
                T(pending_ > 0), {part_, columns_});
    pending_ += count;
    if (pending_ >= kMostRows) move();
  }
  void finish() {
    if (pending_ > 0 || is_empty_) move();
  }

 private:
  static constexpr int64_t kMostRows = 256;
  void move() {
    for (int64_t k = 0; k < features_ * columns_; ++k) {
      const double part = pending_ > 0 ? static_cast<double>(part_[k]) : 0.0;
      total_[k] = is_empty_ ? part : total_[k] + part;
    }
    pending_ = 0;
    is_empty_ = false;
  }
  double* total_;
  int64_t features_, columns_, stride_;
  T* part_;
  int64_t pending_ = 0;
  bool is_empty_ = true;
};

// Adds the sum of some rows to `total`; there must be few enough of them to sum in T.
template <class T>
void add_rows(const T* rows, int64_t count, int64_t columns, T* part, double* total) {
  std::fill(part, part + columns, T(0));
  for (int64_t i = 0; i < count; ++i)
    for (int64_t k = 0; k < columns; ++k) part[k] += rows[i * columns + k];
  for (int64_t k = 0; k < columns; ++k) total[k] += part[k];
}

}  // namespace
}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
