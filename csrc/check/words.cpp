#include "words.h"

#include <algorithm>

namespace check {

Forest Forest::chain(int64_t order) {
  Forest forest;
  for (int64_t m = 0; m < order; ++m) {
    forest.component.push_back(m);
    forest.parent.push_back(m - 1);
    forest.output.push_back(m);
  }
  forest.components = order;
  return forest;
}

void Forest::add_word(const std::vector<int64_t>& vectors) {
  for (size_t k = 0; k < vectors.size(); ++k) {
    parent.push_back(k > 0 ? states() - 1 : -1);
    component.push_back(vectors[k]);
  }
  output.push_back(states() - 1);
}

// A chain; words that share no vectors; prefixes of one list of vectors in reverse order; or any tree.
Forest Forest::random(Random& random) {
  const int64_t kind = random.integer(0, 3);
  if (kind == 0) return chain(random.integer(1, 12));
  Forest forest;
  if (kind < 3) {
    const int64_t order = random.small(1, 12);
    for (int64_t m = 1; m <= order; ++m) {
      std::vector<int64_t> vectors;
      for (int64_t k = 0; k < m; ++k) vectors.push_back(kind == 1 ? forest.components + k : m - 1 - k);
      forest.add_word(vectors);
      forest.components = kind == 1 ? forest.components + m : order;
    }
    return forest;
  }
  const int64_t states = random.integer(1, 12);
  const bool is_shared = random.chance(0.5);
  forest.components = is_shared ? random.integer(1, states + 1) : states;
  for (int64_t s = 0; s < states; ++s) {
    forest.parent.push_back(random.chance(0.6) ? s - 1 : random.integer(-1, s - 1));
    forest.component.push_back(is_shared ? random.integer(0, forest.components - 1) : s);
    if (random.chance(0.6)) forest.output.insert(forest.output.begin() + random.integer(0, forest.levels()), s);
  }
  return forest;
}

int64_t Forest::longest() const {
  int64_t longest = 0;
  for (int64_t s = 0; s < states(); ++s) longest = std::max(longest, depth(s));
  return longest;
}

Number Step::operator()(const std::vector<Number>& state, const std::vector<Number>& letter, int64_t s) const {
  const int64_t depth = forest.depth(s), order = coefficients.empty() ? 1 : static_cast<int64_t>(coefficients.size());
  Number total = power(depth) * state[s], product = 1;
  for (int64_t j = 1, ancestor = s; j <= std::min(order, depth); ++j) {
    product = product * letter[forest.component[ancestor]];
    ancestor = forest.parent[ancestor];
    const Number value = ancestor < 0 ? Number(1) : state[ancestor];
    const Number coefficient = coefficients.empty() ? Number(1) : coefficients[j - 1];
    total = total + coefficient * power(depth - j) * value * product;
  }
  return total;
}

Words::Words(const Forest& forest) {
  std::vector<bool> seen(forest.states());
  start_.push_back(0);
  for (int64_t end = 0; end < forest.states(); ++end) {
    if (std::count(forest.parent.begin(), forest.parent.end(), end) > 0) continue;
    std::vector<int64_t> word;
    for (int64_t s = end; s >= 0; s = forest.parent[s]) word.insert(word.begin(), s);
    for (int64_t s : word) {
      const auto level = std::find(forest.output.begin(), forest.output.end(), s);
      component_.push_back(forest.component[s]);
      state_.push_back(s);
      owned_.push_back(!seen[s]);
      level_.push_back(seen[s] || level == forest.output.end() ? -1 : level - forest.output.begin());
      seen[s] = true;
    }
    start_.push_back(static_cast<int64_t>(state_.size()));
  }
  std::vector<int64_t> sorted = component_;
  std::sort(sorted.begin(), sorted.end());
  bool is_shared = static_cast<int64_t>(sorted.size()) != forest.components;
  for (size_t k = 0; k < sorted.size(); ++k) is_shared = is_shared || sorted[k] != static_cast<int64_t>(k);
  words_ = {static_cast<int64_t>(start_.size()) - 1, forest.longest(), forest.states(), forest.components,
            forest.levels(), is_shared, start_.data(), component_.data(), state_.data(), owned_.data(), level_.data()};
}

}  // namespace check
