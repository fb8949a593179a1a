// Access to the words of a set of functionals.
#pragma once
#include <cstdint>

#include "seq2tens.h"
#include "simd.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {

// One word: its vectors from first to last, and the state up to each of them.
struct Word {
  int64_t length;
  int64_t first;             // position of its first vector among the positions of all words
  const int64_t* component;
  const int64_t* state;
  const int64_t* owned;
  const int64_t* level;
};

inline Word word_of(const seq2tens_words& words, int64_t index) {
  const int64_t first = words.start[index];
  return {words.start[index + 1] - first, first,          words.component + first,
          words.state + first,            words.owned + first, words.level + first};
}

inline int64_t positions_of(const seq2tens_words& words) { return words.start[words.count]; }

// Whether there is only one word, whose state after vector m is level m, so that its states are the output.
inline bool is_one_chain(const seq2tens_words& words) {
  if (words.count != 1 || words.levels != words.longest || words.components != words.longest) return false;
  for (int64_t m = 0; m < words.longest; ++m)
    if (words.component[m] != m || words.level[m] != m) return false;
  return true;
}

}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
