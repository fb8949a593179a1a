// Numbers that record how they were computed: a definition written with them has exact derivatives, and bounds for the
// rounding errors of its values and derivatives. Definitions need no adjoint of their own, so they stay as short as in
// a textbook and cannot share a mistake with the adjoints of the kernels.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

namespace check {

// `error` bounds the rounding error of the whole calculation, to first order and in rounding units. All terms of a sum
// enter with their absolute values, because a kernel may add them in any order.
struct Number {
  double value = 0, error = 0;
  int32_t node = -1;  // on the tape, -1 for a constant
  Number() = default;
  Number(double value) : value(value) {}
  Number(double value, double error, int32_t node) : value(value), error(error), node(node) {}
};

// Records the derivatives of every node by those that it was computed from.
class Tape {
 public:
  void clear(bool is_recording);
  bool is_recording() const { return is_recording_; }
  Number leaf(double value);
  void arc(const Number& from, double derivative, double error = 0) {
    if (is_recording_ && from.node >= 0) arcs_.push_back({from.node, derivative, error});
  }
  Number close(double value, double error);  // a new node with the arcs since the last one

  void seed(const Number& output, double derivative);
  void propagate();  // from the seeds to the leaves
  Number adjoint(const Number& leaf) const;

  // Whether there is a kink so close that rounding decides the derivative.
  bool is_ambiguous = false;

 private:
  struct Arc {
    int32_t from;
    double derivative, error;
  };
  struct Adjoint {
    double value, error;
  };
  bool is_recording_ = false;
  std::vector<Arc> arcs_;
  std::vector<int64_t> ends_;  // of each node's arcs
  std::vector<Adjoint> adjoints_;
};

extern Tape tape;

Number operator+(const Number& a, const Number& b);
Number operator-(const Number& a, const Number& b);
Number operator*(const Number& a, const Number& b);
Number inverse_root(const Number& a);
Number rectified(const Number& a);

// A sum of products as one node, because most of a calculation consists of inner products.
class Sum {
 public:
  void add(const Number& a, const Number& b = Number(1));
  Number close();

 private:
  struct Term {
    Number a, b;
  };
  double value_ = 0, error_ = 0;
  std::vector<Term> terms_;
};

}  // namespace check
