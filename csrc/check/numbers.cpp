#include "numbers.h"

namespace check {

Tape tape;

void Tape::clear(bool is_recording) {
  is_recording_ = is_recording;
  is_ambiguous = false;
  arcs_.clear();
  ends_.clear();
  adjoints_.clear();
}

Number Tape::leaf(double value) { return close(value, 0); }

Number Tape::close(double value, double error) {
  if (!is_recording_) return {value, error, -1};
  ends_.push_back(static_cast<int64_t>(arcs_.size()));
  return {value, error, static_cast<int32_t>(ends_.size() - 1)};
}

void Tape::seed(const Number& output, double derivative) {
  adjoints_.resize(ends_.size(), {0, 0});
  if (output.node < 0) return;
  adjoints_[output.node].value += derivative;
  adjoints_[output.node].error += std::fabs(derivative);  // a node may be seeded several times, and the seeds add up
}

void Tape::propagate() {
  adjoints_.resize(ends_.size(), {0, 0});
  for (int64_t node = static_cast<int64_t>(ends_.size()) - 1; node >= 0; --node) {
    const Adjoint adjoint = adjoints_[node];
    for (int64_t k = node > 0 ? ends_[node - 1] : 0; k < ends_[node]; ++k) {
      const Arc& arc = arcs_[k];
      const double term = adjoint.value * arc.derivative;
      adjoints_[arc.from].value += term;
      adjoints_[arc.from].error +=
          std::fabs(adjoint.value) * arc.error + adjoint.error * std::fabs(arc.derivative) + std::fabs(term);
    }
  }
}

Number Tape::adjoint(const Number& leaf) const { return {adjoints_[leaf.node].value, adjoints_[leaf.node].error, -1}; }

static double sum_error(const Number& a, const Number& b) {
  return a.error + b.error + std::fabs(a.value) + std::fabs(b.value);
}

static double product_error(const Number& a, const Number& b) {
  return std::fabs(a.value) * b.error + a.error * std::fabs(b.value) + std::fabs(a.value * b.value);
}

Number operator+(const Number& a, const Number& b) {
  tape.arc(a, 1);
  tape.arc(b, 1);
  return tape.close(a.value + b.value, sum_error(a, b));
}

Number operator-(const Number& a, const Number& b) {
  tape.arc(a, 1);
  tape.arc(b, -1);
  return tape.close(a.value - b.value, sum_error(a, b));
}

Number operator*(const Number& a, const Number& b) {
  tape.arc(a, b.value, b.error);
  tape.arc(b, a.value, a.error);
  return tape.close(a.value * b.value, product_error(a, b));
}

Number inverse_root(const Number& a) {
  const double value = 1 / std::sqrt(a.value), slope = -0.5 * value / a.value, relative = a.error / a.value;
  tape.arc(a, slope, std::fabs(slope) * (4 + 1.5 * relative));
  return tape.close(value, value * (2 + 0.5 * relative));
}

Number rectified(const Number& a) {
  if (a.value != 0 && std::fabs(a.value) < 1e-4 * a.error) tape.is_ambiguous = true;
  if (a.value > 0) return a;
  return {0, a.error, -1};
}

void Sum::add(const Number& a, const Number& b) {
  value_ += a.value * b.value;
  error_ += product_error(a, b) + std::fabs(a.value * b.value);
  if (tape.is_recording()) terms_.push_back({a, b});
}

Number Sum::close() {
  for (const Term& term : terms_) {
    tape.arc(term.a, term.b.value, term.b.error);
    tape.arc(term.b, term.a.value, term.a.error);
  }
  return tape.close(value_, error_);
}

}  // namespace check
