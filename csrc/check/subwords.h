// All subwords of the words of a forest, as read by the kernels that join parts of sequences.
#pragma once
#include "words.h"

namespace check {

using Word = std::vector<int64_t>;

class Subwords {
 public:
  explicit Subwords(const Forest& forest);  // the states of the forest must have different words
  Subwords(const Subwords&) = delete;
  Subwords& operator=(const Subwords&) = delete;
  const seq2tens_subwords* data() const { return &subwords_; }
  int64_t words() const { return subwords_.words; }
  const Word& word(int64_t number) const { return words_[number]; }
  int64_t number(const Word& word) const { return numbers_.at(word); }

  static Forest random_forest(Random& random);

 private:
  void add(const Word& word);

  std::vector<Word> words_;  // the empty one first
  std::map<Word, int64_t> numbers_;
  std::vector<int64_t> order_, length_, first_, rest_, last_, parent_, output_, cut_from_, cut_left_, cut_right_;
  seq2tens_subwords subwords_;
};

}  // namespace check
