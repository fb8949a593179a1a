#include "subwords.h"

#include <algorithm>
#include <set>

namespace check {
namespace {

std::vector<Word> words_of(const Forest& forest) {
  std::vector<Word> words;
  for (int64_t s = 0; s < forest.states(); ++s) {
    Word word = forest.parent[s] < 0 ? Word() : words[forest.parent[s]];
    word.push_back(forest.component[s]);
    words.push_back(word);
  }
  return words;
}

}  // namespace

Forest Subwords::random_forest(Random& random) {
  for (;;) {
    const Forest forest = Forest::random(random);
    const std::vector<Word> words = words_of(forest);
    if (std::set<Word>(words.begin(), words.end()).size() == words.size()) return forest;
  }
}

void Subwords::add(const Word& word) {
  if (numbers_.count(word)) return;
  numbers_[word] = static_cast<int64_t>(words_.size());
  words_.push_back(word);
}

Subwords::Subwords(const Forest& forest) {
  add({});
  const std::vector<Word> given = words_of(forest);
  for (const Word& word : given) add(word);
  for (const Word& word : given)
    for (size_t i = 0; i < word.size(); ++i)
      for (size_t j = i + 1; j <= word.size(); ++j) add(Word(word.begin() + i, word.begin() + j));
  for (size_t w = 0; w < words_.size(); ++w) {
    const Word& word = words_[w];
    length_.push_back(static_cast<int64_t>(word.size()));
    first_.push_back(word.empty() ? 0 : word.front());
    last_.push_back(word.empty() ? 0 : word.back());
    rest_.push_back(word.empty() ? 0 : number(Word(word.begin() + 1, word.end())));
    parent_.push_back(word.empty() ? 0 : number(Word(word.begin(), word.end() - 1)));
    cut_from_.push_back(static_cast<int64_t>(cut_left_.size()));
    for (size_t cut = 1; cut < word.size(); ++cut) {
      cut_left_.push_back(number(Word(word.begin(), word.begin() + cut)));
      cut_right_.push_back(number(Word(word.begin() + cut, word.end())));
    }
    if (w > 0) order_.push_back(static_cast<int64_t>(w));
  }
  cut_from_.push_back(static_cast<int64_t>(cut_left_.size()));
  std::stable_sort(order_.begin(), order_.end(), [&](int64_t a, int64_t b) { return length_[a] > length_[b]; });
  for (int64_t state : forest.output) output_.push_back(state + 1);
  subwords_ = {static_cast<int64_t>(order_.size()), forest.states(), forest.levels(), order_.data(), length_.data(),
              first_.data(), rest_.data(), last_.data(), parent_.data(), output_.data(), cut_from_.data(),
              cut_left_.data(), cut_right_.data()};
}

}  // namespace check
