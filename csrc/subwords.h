// Joins the values of two adjacent parts of a sequence to those of the whole.
#pragma once
#include <cstdint>

#include "seq2tens.h"
#include "simd.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {

// The value of a word on two adjacent parts. `left` and `right` return the value of a word, by number, on each part.
template <class V, class Left, class Right>
inline V join_word(const seq2tens_subwords& subwords, int64_t word, const Left& left, const Right& right) {
  V value = left(word) + right(word);
  for (int64_t cut = subwords.cut_from[word]; cut < subwords.cut_from[word + 1]; ++cut)
    value += left(subwords.cut_left[cut]) * right(subwords.cut_right[cut]);
  return value;
}

}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
