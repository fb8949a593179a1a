// Look-up of intervals in tables.
#include "subwords.h"

namespace check {
namespace {

// A table of values of words, and the row that each interval uses.
struct Table {
  int64_t rows = 0, words = 0;
  Input values;
  std::vector<int64_t> chosen;
};

class Intervals : public Problem {
 public:
  explicit Intervals(Random& random) : Problem(random), forest_(Subwords::random_forest(random)), subwords_(forest_) {
    count_ = random.small(0, 70);
    width_ = random.small(1, 300);
    const double budget = random.budget(1e5);
    while (double(count_ + 10) * double(width_ * subwords_.words()) * 10 > budget && count_ + width_ > 2)
      (width_ > 1 ? width_ : count_) /= 2;
    ends_ = table(random.integer(1, 5), forest_.states(), false);
    stretches_ = table(random.integer(1, 5), subwords_.words(), true);
    beginnings_ = table(random.integer(1, 5), subwords_.words(), false);
    for (int64_t i = 0; i < count_; ++i) right_.push_back(random.integer(0, stretches_.rows - 1));
  }

  std::string describe() const override {
    return Description()("is_double", is_double)("threads", threads)("count", count_)("width", width_)(
        "states", forest_.states())("levels", forest_.levels())("words", subwords_.words())("ends", ends_.rows)(
        "stretches", stretches_.rows)("beginnings", beginnings_.rows)
        .text();
  }

  Definition define() override;
  Outcome run() override;

 private:
  // With `nothing` the last row stands for no steps.
  Table table(int64_t rows, int64_t words, bool nothing) {
    Table table{rows, words, {}, {}};
    const int64_t filled = (rows - nothing) * words * width_;
    table.values = Input::of(random, rows * words * width_, is_double,
                             [&](int64_t i) { return i < filled ? random.normal() : 0.0; });
    for (int64_t i = 0; i < count_; ++i) table.chosen.push_back(random.integer(0, rows - 1));
    return table;
  }
  Number value(const Table& table, int64_t row, int64_t word, int64_t k) const {
    return word == 0 ? Number(1) : Number(table.values.value((row * table.words + word - 1) * width_ + k));
  }
  // Appends a row of a table to the values of the states.
  std::vector<Number> append(const std::vector<Number>& before, const Table& table, int64_t row, int64_t k) const;

  Forest forest_;
  Subwords subwords_;
  int64_t count_, width_;
  Table ends_, stretches_, beginnings_;
  std::vector<int64_t> right_;  // rows of the second stretches
};

// Index 0 is the empty word.
std::vector<Number> Intervals::append(const std::vector<Number>& before, const Table& table, int64_t row,
                                      int64_t k) const {
  std::vector<Number> after{Number(1)};
  for (int64_t s = 1; s <= forest_.states(); ++s) {
    const Word& word = subwords_.word(s);
    Sum sum;
    for (size_t cut = 0; cut <= word.size(); ++cut)
      sum.add(before[subwords_.number(Word(word.begin(), word.begin() + cut))],
              value(table, row, subwords_.number(Word(word.begin() + cut, word.end())), k));
    after.push_back(sum.close());
  }
  return after;
}

Definition Intervals::define() {
  tape.clear(false);
  std::vector<Number> out(count_ * forest_.levels() * width_);
  for (int64_t i = 0; i < count_; ++i)
    for (int64_t k = 0; k < width_; ++k) {
      std::vector<Number> state;
      for (int64_t s = 0; s <= forest_.states(); ++s) state.push_back(value(ends_, ends_.chosen[i], s, k));
      state = append(state, stretches_, stretches_.chosen[i], k);
      state = append(state, stretches_, right_[i], k);
      state = append(state, beginnings_, beginnings_.chosen[i], k);
      for (int64_t m = 0; m < forest_.levels(); ++m)
        out[(i * forest_.levels() + m) * width_ + k] = state[forest_.output[m] + 1];
    }
  return {{"out", out}};
}

Outcome Intervals::run() {
  const auto out = room(count_ * forest_.levels() * width_);
  seq2tens_intervals call = {};
  call.is_double = is_double;
  call.threads = threads;
  call.count = count_;
  call.width = width_;
  call.nothing = stretches_.rows - 1;
  call.subwords = subwords_.data();
  call.ends = ends_.values.data();
  call.stretches = stretches_.values.data();
  call.beginnings = beginnings_.values.data();
  call.end = ends_.chosen.data();
  call.left = stretches_.chosen.data();
  call.right = right_.data();
  call.beginning = beginnings_.chosen.data();
  call.out = out->data();
  require(seq2tens_join_intervals(&call));
  return {{"out", out}};
}

const Registered registered("intervals", [](Random& random) -> std::unique_ptr<Problem> {
  return std::make_unique<Intervals>(random);
});

}  // namespace
}  // namespace check
