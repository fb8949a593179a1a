// Numbers that remember how they came about: a definition written with them has exact derivatives, and a bound for
// what rounding may do to its values and derivatives. Definitions need no adjoint of their own, so they stay as short
// as the textbook's, and cannot share a mistake with the kernels'.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

namespace check {

// `error` is what rounding every step of the calculation may amount to, to first order and in rounding units, with all
// terms of a sum made positive: a kernel may add them in any order.
struct Number {
  double value = 0, error = 0;
  int32_t node = -1;  // on the tape, -1 for a constant
  Number() = default;
  Number(double value) : value(value) {}
  Number(double value, double error, int32_t node) : value(value), error(error), node(node) {}
};

// Derivatives of every node by those that it was computed from.
class Tape {
 public:
  void clear(bool is_recording);
  bool is_recording() const { return is_recording_; }
  Number leaf(double value);
  void arc(const Number& from, double derivative, double error = 0) {
    if (is_recording_ && from.node >= 0) arcs_.push_back({from.node, derivative, error});
  }
  Number close(double value, double error);  // a node with the arcs since the last one

  void seed(const Number& output, double derivative);
  void propagate();  // from the seeds to the leaves
  Number adjoint(const Number& leaf) const;

  // A kink so near that rounding decides about the derivative.
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

// A sum of products as one node: most of a calculation is inner products.
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
