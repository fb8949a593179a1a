// Runs every operation on random problems, for every instruction set of this processor, and compares the results with
// those of the definitions.
//   check [--cases N] [--seed S] [--operation NAME]
// Case number i has the seed S + i, so that a single case can be repeated.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "check.h"

namespace check {
namespace {

// Errors are measured in multiples of a bound for rounding errors. A bug causes errors far above this multiple.
constexpr double kMostError = 20;

struct Options {
  int64_t cases = 1000;
  uint64_t seed = 0;
  std::string operation;  // empty: all
};

struct Case {
  const std::string& operation;
  uint64_t seed;
  const Problem& problem;
  const char* isa;
};

[[noreturn]] void fail(const Case& c, const std::string& what) {
  std::printf("%s on %s, seed %llu: %s\n  %s\n", c.operation.c_str(), c.isa, static_cast<unsigned long long>(c.seed),
              what.c_str(), c.problem.describe().c_str());
  std::printf("  again: check --operation %s --seed %llu --cases 1\n", c.operation.c_str(),
              static_cast<unsigned long long>(c.seed));
  std::exit(1);
}

// The largest error of a result, in multiples of the bound for rounding errors.
double compare(const Case& c, const std::string& name, const std::vector<Number>& want, const Array& got) {
  if (static_cast<int64_t>(want.size()) != got.count()) fail(c, name + " has the wrong size");
  if (!got.is_intact()) fail(c, "something was written before " + name);
  const double unit = c.problem.is_double ? 0x1p-53 : 0x1p-24;
  double largest = 0;
  for (int64_t i = 0; i < got.count(); ++i) {
    const double bound = unit * (want[i].error + std::fabs(want[i].value) + 1e-25);
    const double error = std::fabs(got[i] - want[i].value) / bound;
    if (!(error <= kMostError)) {
      std::ostringstream text;
      text.precision(17);
      text << name << "[" << i << "] is " << got[i] << ", not " << want[i].value << ", and rounding may do "
           << bound;
      fail(c, text.str());
    }
    largest = std::max(largest, error);
  }
  return largest;
}

double compare(const Case& c, const Definition& want, const Outcome& got) {
  double largest = 0;
  for (const auto& [name, numbers] : want) {
    const auto found = got.find(name);
    if (found == got.end()) fail(c, name + " is missing");
    largest = std::max(largest, compare(c, name, numbers, *found->second));
  }
  return largest;
}

// Requires the same bits for any number of threads and any address of the results.
void compare_bits(const Case& c, const Outcome& one, const Outcome& other) {
  for (const auto& [name, array] : one)
    if (!array->has_bits_of(*other.at(name))) fail(c, name + " depends on the threads or on where its memory is");
}

struct InstructionSet {
  const char* name;
  double largest = 0;
};

std::vector<InstructionSet> instruction_sets() {
  std::vector<InstructionSet> sets;
  for (const char* name : {"x86-64-v4", "x86-64-v3", "x86-64-v2", "generic"})
    if (seq2tens_set_isa(name)) sets.push_back({name});
  return sets;
}

void run_case(const std::string& operation, uint64_t seed, std::vector<InstructionSet>& sets) {
  Random random(seed);
  const auto problem = operations().at(operation)(random);
  const Definition want = problem->define();
  const bool is_repeated = random.chance(0.1);
  for (InstructionSet& set : sets) {
    seq2tens_set_isa(set.name);
    const Case c{operation, seed, *problem, set.name};
    const Outcome got = problem->run();
    set.largest = std::max(set.largest, compare(c, want, got));
    if (!is_repeated) continue;
    problem->threads = random.integer(1, 4);
    compare_bits(c, got, problem->run());
  }
}

void run_operation(const std::string& operation, const Options& options) {
  std::vector<InstructionSet> sets = instruction_sets();
  for (int64_t i = 0; i < options.cases; ++i) run_case(operation, options.seed + static_cast<uint64_t>(i), sets);
  for (const InstructionSet& set : sets)
    std::printf("%-12s %-10s %lld cases, largest error %.4f of the bound for rounding\n", operation.c_str(), set.name,
                static_cast<long long>(options.cases), set.largest);
  std::fflush(stdout);
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; i += 2) {
    const std::string name = arguments[i];
    const char* value = i + 1 < count ? arguments[i + 1] : nullptr;
    if (value && name == "--cases")
      options.cases = std::strtoll(value, nullptr, 10);
    else if (value && name == "--seed")
      options.seed = std::strtoull(value, nullptr, 10);
    else if (value && name == "--operation" && operations().count(value))
      options.operation = value;
    else {
      std::fprintf(stderr, "check [--cases N] [--seed S] [--operation NAME], where NAME is one of");
      for (const auto& operation : operations()) std::fprintf(stderr, " %s", operation.first.c_str());
      std::fprintf(stderr, "\n");
      std::exit(2);
    }
  }
  return options;
}

}  // namespace
}  // namespace check

int main(int count, char** arguments) {
  const check::Options options = check::parse(count, arguments);
  for (const auto& operation : check::operations())
    if (options.operation.empty() || options.operation == operation.first)
      check::run_operation(operation.first, options);
}
