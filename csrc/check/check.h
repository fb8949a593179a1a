// Random problems for every operation, solved both by its definition and by the kernels.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "../seq2tens.h"
#include "numbers.h"

namespace check {

// Random numbers that are the same on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits();
  double uniform();                               // in [0, 1)
  double normal();
  bool chance(double probability) { return uniform() < probability; }
  int64_t integer(int64_t low, int64_t high);     // both ends included
  int64_t small(int64_t low, int64_t high);       // usually near `low`
  double budget(double most);                     // a number of multiplications, usually small

 private:
  uint64_t state_;
};

// Memory with a pattern before it and no spare byte after it, where the address sanitizer detects overruns.
class Memory {
 public:
  Memory(Random& random, int64_t count, int64_t element_size);
  char* data() const { return data_.get() + offset_; }
  int64_t size() const { return size_; }
  bool is_intact() const;  // whether the pattern before it is unchanged

 private:
  struct Free {
    void operator()(char* memory) const;
  };
  int64_t offset_, size_;
  std::unique_ptr<char[], Free> data_;
};

// An array of floats or doubles, initially NaN.
class Array {
 public:
  Array(Random& random, int64_t count, bool is_double);
  void* data() const { return memory_.data(); }
  int64_t count() const { return count_; }
  double operator[](int64_t index) const;
  void set(int64_t index, double value);
  bool is_intact() const { return memory_.is_intact(); }
  bool has_bits_of(const Array& other) const;

 private:
  bool is_double_;
  int64_t count_;
  Memory memory_;
};

// An input of an operation: numbers for the kernels, leaves for the definition. It may be missing.
class Input {
 public:
  Input() = default;
  static Input normal(Random& random, int64_t count, bool is_double, double scale = 1);
  template <class Value>  // value(index) is called for every number
  static Input of(Random& random, int64_t count, bool is_double, const Value& value) {
    Input input;
    input.array_ = std::make_shared<Array>(random, count, is_double);
    for (int64_t i = 0; i < count; ++i) input.array_->set(i, value(i));
    return input;
  }
  explicit operator bool() const { return array_ != nullptr; }
  void* data() const { return array_ ? array_->data() : nullptr; }
  double* doubles() const { return static_cast<double*>(data()); }
  double value(int64_t index) const { return (*array_)[index]; }
  int64_t count() const { return array_ ? array_->count() : 0; }
  std::vector<Number> leaves();                 // new leaves on the tape; empty if missing
  std::vector<Number> adjoints() const;         // of the leaves, after `propagate`
  void copy_to(Array& target) const;

 private:
  std::shared_ptr<Array> array_;
  std::vector<Number> leaves_;
};

// The valid steps; it may be missing.
class Mask {
 public:
  Mask() = default;
  static Mask random(Random& random, int64_t count);
  static Mask lengths(Random& random, int64_t batch, int64_t length);  // the first steps of each sequence
  uint8_t* data() const { return memory_ ? reinterpret_cast<uint8_t*>(memory_->data()) : nullptr; }
  bool operator[](int64_t index) const { return !memory_ || data()[index] != 0; }
  explicit operator bool() const { return memory_ != nullptr; }

 private:
  std::shared_ptr<Memory> memory_;
};

void seed(const std::vector<Number>& outputs, const Input& derivatives);  // on the tape

using Definition = std::map<std::string, std::vector<Number>>;
using Outcome = std::map<std::string, std::shared_ptr<Array>>;

class Problem {
 public:
  explicit Problem(Random& random)
      : random(random), is_double(random.chance(0.5)), threads(random.integer(1, 4)) {}
  virtual ~Problem() = default;
  virtual std::string describe() const = 0;
  virtual Definition define() = 0;  // the results of the definition, by name
  virtual Outcome run() = 0;        // the results of the kernels, by name

  Random& random;
  bool is_double;
  int64_t threads;

 protected:
  // Memory for a result.
  std::shared_ptr<Array> room(int64_t count) { return room(count, is_double); }
  std::shared_ptr<Array> room(int64_t count, bool is_double) {
    return std::make_shared<Array>(random, count, is_double);
  }
};

// Every operation has its own file, in which it registers its problems.
using Draw = std::unique_ptr<Problem> (*)(Random&);
std::map<std::string, Draw>& operations();
struct Registered {
  Registered(const char* name, Draw draw) { operations()[name] = draw; }
};

void require(int64_t status);  // exits unless a kernel had enough memory

// "name value" pairs of a description.
class Description {
 public:
  template <class Value>
  Description& operator()(const char* name, const Value& value) {
    text_ << (text_.tellp() > 0 ? ", " : "") << name << " " << value;
    return *this;
  }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
};

}  // namespace check
