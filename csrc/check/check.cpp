#include "check.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace check {

uint64_t Random::bits() {  // splitmix64
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

double Random::uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

double Random::normal() {  // approximately
  return (uniform() + uniform() + uniform() + uniform() - 2) * 1.7320508075688772;
}

int64_t Random::integer(int64_t low, int64_t high) {
  return low + static_cast<int64_t>(bits() % static_cast<uint64_t>(high - low + 1));
}

int64_t Random::small(int64_t low, int64_t high) { return low + integer(0, integer(0, integer(0, high - low))); }

double Random::budget(double most) { return 30 * std::pow(most / 30, std::pow(uniform(), 2)); }

static constexpr char kPattern = 0x5a;

Memory::Memory(Random& random, int64_t count, int64_t element_size)
    : offset_(random.integer(0, 15) * element_size), size_(count * element_size) {
  data_.reset(static_cast<char*>(std::malloc(static_cast<size_t>(offset_ + size_))));
  std::memset(data_.get(), kPattern, static_cast<size_t>(offset_));
}

void Memory::Free::operator()(char* memory) const { std::free(memory); }

bool Memory::is_intact() const {
  for (int64_t i = 0; i < offset_; ++i)
    if (data_[i] != kPattern) return false;
  return true;
}

Array::Array(Random& random, int64_t count, bool is_double)
    : is_double_(is_double), count_(count), memory_(random, count, is_double ? 8 : 4) {
  for (int64_t i = 0; i < count; ++i) set(i, std::numeric_limits<double>::quiet_NaN());
}

double Array::operator[](int64_t index) const {
  return is_double_ ? static_cast<double*>(data())[index] : static_cast<float*>(data())[index];
}

void Array::set(int64_t index, double value) {
  if (is_double_)
    static_cast<double*>(data())[index] = value;
  else
    static_cast<float*>(data())[index] = static_cast<float>(value);
}

bool Array::has_bits_of(const Array& other) const {
  return count_ == 0 || std::memcmp(data(), other.data(), static_cast<size_t>(memory_.size())) == 0;
}

Input Input::normal(Random& random, int64_t count, bool is_double, double scale) {
  return of(random, count, is_double, [&](int64_t) { return scale * random.normal(); });
}

std::vector<Number> Input::leaves() {
  leaves_.clear();
  for (int64_t i = 0; i < count(); ++i) leaves_.push_back(tape.leaf(value(i)));
  return leaves_;
}

std::vector<Number> Input::adjoints() const {
  std::vector<Number> adjoints;
  for (const Number& leaf : leaves_) adjoints.push_back(tape.adjoint(leaf));
  return adjoints;
}

void Input::copy_to(Array& target) const {
  for (int64_t i = 0; i < count(); ++i) target.set(i, value(i));
}

Mask Mask::random(Random& random, int64_t count) {
  Mask mask;
  mask.memory_ = std::make_shared<Memory>(random, count, 1);
  const double share = random.uniform() * 1.2;
  for (int64_t i = 0; i < count; ++i) mask.data()[i] = random.chance(share);
  return mask;
}

Mask Mask::lengths(Random& random, int64_t batch, int64_t length) {
  Mask mask;
  mask.memory_ = std::make_shared<Memory>(random, batch * length, 1);
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t count = random.integer(0, length);
    for (int64_t i = 0; i < length; ++i) mask.data()[b * length + i] = i < count;
  }
  return mask;
}

void seed(const std::vector<Number>& outputs, const Input& derivatives) {
  for (int64_t i = 0; i < derivatives.count(); ++i) tape.seed(outputs[i], derivatives.value(i));
}

std::map<std::string, Draw>& operations() {
  static std::map<std::string, Draw> operations;
  return operations;
}

void require(int64_t status) {
  if (status == 0) return;
  std::fprintf(stderr, "a kernel had not enough memory\n");
  std::exit(1);
}

}  // namespace check
