// Chains of functionals as a forest of states, and as the words that the kernels read.
#pragma once
#include "check.h"

namespace check {

// State s extends the word of state parent[s] by the vector component[s]; parents come before their children.
struct Forest {
  std::vector<int64_t> component, parent, output;  // `output` is the state of each level
  int64_t components = 0;

  static Forest chain(int64_t order);  // every state is a level
  static Forest random(Random& random);
  int64_t states() const { return static_cast<int64_t>(parent.size()); }
  int64_t levels() const { return static_cast<int64_t>(output.size()); }
  int64_t depth(int64_t state) const { return state < 0 ? 0 : 1 + depth(parent[state]); }
  int64_t longest() const;

 private:
  void add_word(const std::vector<int64_t>& vectors);  // its last state is a level
};

// One step of one functional: returns the new value of state s, given the values of all states and letters.
struct Step {
  const Forest& forest;
  const std::vector<Number>& coefficients;  // if empty, one coefficient 1
  const std::vector<Number>& powers;        // powers of the decay; if empty, 1

  Number power(int64_t m) const { return powers.empty() ? Number(1) : powers[m]; }
  Number operator()(const std::vector<Number>& state, const std::vector<Number>& letter, int64_t s) const;
};

class Words {
 public:
  explicit Words(const Forest& forest);
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;
  const seq2tens_words* data() const { return &words_; }

 private:
  std::vector<int64_t> start_, component_, state_, owned_, level_;
  seq2tens_words words_;
};

}  // namespace check
