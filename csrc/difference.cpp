// Differences of adjacent steps in one pass; in torch the two directions take three and six.
#include <algorithm>

#include "parallel.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {
namespace difference_detail {
namespace {

template <class T>
void run(const seq2tens_difference& call) {
  const int64_t n = call.channels, size = call.length * n;
  const int64_t border = call.reverse ? size - n : 0;  // the step whose neighbour lies beyond the end
  const int64_t first = call.reverse ? 0 : n, neighbor = call.reverse ? n : -n;
  const int64_t worth = call.batch * size / worth_a_task(1 << 17);
  for_each_task(size == 0 ? 0 : call.batch, threads_worth(worth, call.threads), [&](int64_t b) {
    const T* x = static_cast<const T*>(call.x) + b * size;
    T* __restrict y = static_cast<T*>(call.y) + b * size;
    std::copy(x + border, x + border + n, y + border);
    for (int64_t k = first; k < first + size - n; ++k) y[k] = x[k] - x[k + neighbor];
  });
}

}  // namespace
}  // namespace difference_detail

void difference_steps(const seq2tens_difference& call) {
  call.is_double ? difference_detail::run<double>(call) : difference_detail::run<float>(call);
}

}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
