// How the values of two parts of a sequence become those of the whole.
#pragma once
#include <cstdint>

#include "seq2tens.h"
#include "simd.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {

// A word's value on two parts on end. `left` and `right` give its values on each, for a word by number.
template <class V, class Left, class Right>
inline V join_word(const seq2tens_subwords& subwords, int64_t word, const Left& left, const Right& right) {
  V value = left(word) + right(word);
  for (int64_t cut = subwords.cut_from[word]; cut < subwords.cut_from[word + 1]; ++cut)
    value += left(subwords.cut_left[cut]) * right(subwords.cut_right[cut]);
  return value;
}

}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
