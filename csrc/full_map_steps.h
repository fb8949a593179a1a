// One step of the full map and its adjoint, for one sequence or for eight interleaved ones.
//
// A state holds the levels 0, 1, … one after the other in doubles; every coordinate is one number, or kSide numbers for
// as many sequences. Words are stored with their newest letter first: the index of (a_1, …, a_m) in its level is
// a_m d^(m-1) + … + a_1, so a multiplication by a step runs over long contiguous ranges.
#pragma once
#include "full_map_products.h"
#include "parallel.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {
namespace full_map_detail {
namespace {

// The offsets of the levels, in coordinates.
struct Levels {
  int64_t dim;
  int64_t order;
  const int64_t* start;  // [order + 2]
  int64_t count(int64_t m) const { return start[m + 1] - start[m]; }
  int64_t lower() const { return start[order]; }  // coordinates below the top level
  int64_t size() const { return start[order + 1]; }
};

// The coefficients of the lift, and their gradients, or NULL.
struct Lift {
  int64_t order;
  const double* coefficients;
  double* gradients;
  double operator[](int64_t j) const { return coefficients[j - 1]; }  // c_j
};

// A step adds h ⊗ x to level m of the state s, with
// h = c_1 S_(m-1) + (c_2 S_(m-2) + (c_3 S_(m-3) + …) ⊗ x) ⊗ x.
template <bool Side>
struct Step {
  static constexpr int64_t columns = Side ? kSide : 1;
  const Levels& levels;
  const Lift& lift;
  double* chain;   // [lower] the inner brackets, each at its level
  double* dchain;  // [lower] gradients of the brackets

  int64_t place(int64_t m) const { return levels.start[m] * columns; }
  int64_t numbers(int64_t m) const { return levels.count(m) * columns; }
  int64_t lowest(int64_t m) const { return std::max<int64_t>(1, m - lift.order); }
  Products<double> product(const double* h, int64_t m, const double* x) const {
    return {1, levels.dim, x, 0, h, 0, numbers(m - 1)};
  }

  // Writes bracket k of h for level m >= 2 to `target`; it encloses bracket k - 1, which is in the chain.
  template <class N>
  void find_bracket(int64_t m, int64_t k, const double* s, const double* x, N* target) const {
    const double* level = s + place(k);
    if (k > lowest(m)) return add_product<Side>(product(chain + place(k - 1), k, x), lift[m - k], level, target);
    // S_0 = 1 enters as a multiple of x, if there are enough coefficients
    const bool whole = lift.order >= m;
    combine(lift[m - k], level, whole ? lift[m] : 0.0, whole ? x : level, target, numbers(k));
  }

  // Writes the inner brackets of h for level m to the chain.
  void find_brackets(int64_t m, const double* s, const double* x) const {
    for (int64_t k = lowest(m); k < m - 1; ++k) find_bracket(m, k, s, x, chain + place(k));
  }

  // Writes h for level m to `last`, and its inner brackets to the chain.
  template <class N>
  void find_factor(int64_t m, const double* s, const double* x, N* last) const {
    if (m == 1) return std::fill(last, last + columns, static_cast<N>(lift[1]));
    find_brackets(m, s, x);
    find_bracket(m, m - 1, s, x, last);
  }

  // Finds levels 1 to `order` of the state after a step; `after` may be `before`.
  void advance(const double* before, double* after, const double* x, int64_t order) const {
    for (int64_t m = order; m >= 2; --m) {  // each level needs the old values of lower levels
      double* h = chain + place(m - 1);
      find_factor(m, before, x, h);
      add_product<Side>(product(h, m, x), 1.0, before + place(m), after + place(m));
    }
    if (order >= 1) combine(lift[1], x, 1.0, before + place(1), after + place(1), numbers(1));
  }

  // Adjoint of `find_factor`: from `flow`, the gradient of h, to those of the state, the step and the coefficients.
  void unwind(int64_t m, const double* s, const double* x, const double* flow, double* g, double* dx) const {
    const int64_t low = lowest(m);
    for (int64_t k = m - 1; k >= low; --k) {
      if (lift.gradients) lift.gradients[m - k - 1] += dot(s + place(k), flow, numbers(k));
      combine(lift[m - k], flow, 1.0, g + place(k), g + place(k), numbers(k));
      if (k > low) {
        double* dinner = dchain + place(k - 1);
        contract_some<Side, 1>(product(chain + place(k - 1), k, x), flow, dinner, dx);
        flow = dinner;
      }
    }
    if (m == 1)
      for (int64_t q = 0; lift.gradients && q < columns; ++q) lift.gradients[0] += flow[q];
    else if (lift.order >= m)
      add_letters(m, x, flow, dx);
  }

  // Adjoint of c_m x.
  void add_letters(int64_t m, const double* x, const double* flow, double* dx) const {
    combine(lift[m], flow, 1.0, dx, dx, numbers(1));
    if (lift.gradients) lift.gradients[m - 1] += dot(x, flow, numbers(1));
  }

  // Adjoint of `advance`: g is the gradient of the state after the step, then of s, the one before. Adds to dx.
  void retreat(double* g, const double* s, const double* x, double* dx, int64_t order) const {
    if (order >= 1) add_letters(1, x, g + place(1), dx);
    for (int64_t m = 2; m <= order; ++m) {  // a level is read before higher levels add to it
      double *h = chain + place(m - 1), *dh = dchain + place(m - 1);
      find_factor(m, s, x, h);
      contract_some<Side, 1>(product(h, m, x), g + place(m), dh, dx);
      unwind(m, s, x, dh, g, dx);
    }
  }
};

// A call, its levels, the order of words in its results, and its division into tasks.
struct Map {
  const seq2tens_full_map& call;
  Levels levels;
  const int64_t* places;  // [size] place in the state of every coordinate of a result
  int64_t length;         // steps
  int64_t blocks;
  int64_t groups;
  int64_t tasks;
  int64_t threads;

  Map(const seq2tens_full_map& call, Frame& frame) : call(call) {
    const int64_t d = call.dim;
    int64_t* start = frame.take<int64_t>(call.order + 2);
    start[0] = 0;
    for (int64_t m = 0, count = 1; m <= call.order; ++m, count *= d) start[m + 1] = start[m] + count;
    levels = {d, call.order, start};
    places = find_places(frame.take<int64_t>(levels.size()));
    length = std::max<int64_t>(0, call.points - call.increments);
    blocks = (length + call.block - 1) / call.block;
    groups = (call.batch + call.lanes - 1) / call.lanes;
    constexpr int64_t kWorthATask = worth_a_task(200000);  // multiplications, some 40 µs
    const int64_t top = levels.count(call.order);
    const int64_t worth = call.batch * length * (top + 4 * levels.lower()) / kWorthATask;
    tasks = std::max<int64_t>(1, std::min({groups, worth, int64_t{16}}));
    threads = threads_worth(2 * worth, call.threads);
  }

 private:
  // The first letter of a word varies slowest in a result and fastest in the state.
  const int64_t* find_places(int64_t* places) const {
    const int64_t d = levels.dim, *start = levels.start;
    places[0] = 0;
    for (int64_t m = 1; m <= levels.order; ++m)
      for (int64_t a = 0, n = levels.count(m - 1); a < d; ++a)
        for (int64_t i = 0; i < n; ++i)
          places[start[m] + a * n + i] = start[m] + d * (places[start[m - 1] + i] - start[m - 1]) + a;
    return places;
  }
};

}  // namespace
}  // namespace full_map_detail
}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
