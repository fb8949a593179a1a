// The exported functions: they choose the kernels for this processor and call them.
#include <cstring>

#include "kernels.h"

#ifndef SEQ2TENS_DIGEST
#define SEQ2TENS_DIGEST ""
#endif

namespace seq2tens {

// The instruction sets of this library, best first: their names, kernels, and whether this processor supports them.
#if defined(SEQ2TENS_X86_64_LEVELS)
namespace x86_64_v2 { extern const Kernels kernels; }
namespace x86_64_v3 { extern const Kernels kernels; }
namespace x86_64_v4 { extern const Kernels kernels; }

static bool has_v2() { return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt"); }
static bool has_v3() {
  return has_v2() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
}
static bool has_v4() {
  return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#else
namespace generic { extern const Kernels kernels; }
static bool always() { return true; }
#endif

struct InstructionSet {
  const char* name;
  const Kernels* kernels;
  bool (*is_available)();
};

static const InstructionSet instruction_sets[] = {
#if defined(SEQ2TENS_X86_64_LEVELS)
    {"x86-64-v4", &x86_64_v4::kernels, has_v4},
    {"x86-64-v3", &x86_64_v3::kernels, has_v3},
    {"x86-64-v2", &x86_64_v2::kernels, has_v2},
#else
    {"generic", &generic::kernels, always},
#endif
};

static const Kernels* chosen = nullptr;

}  // namespace seq2tens

extern "C" {

const char* seq2tens_set_isa(const char* name) {
  for (const auto& set : seq2tens::instruction_sets) {
    if ((!name || std::strcmp(name, set.name) == 0) && set.is_available()) {
      seq2tens::chosen = set.kernels;
      return set.name;
    }
  }
  return nullptr;
}

const char* seq2tens_source_digest(void) { return SEQ2TENS_DIGEST; }

#define SEQ2TENS_DEFINE(name, call) \
  int64_t seq2tens_##name(const call* c) { return seq2tens::chosen->name(c); }
SEQ2TENS_OPERATIONS(SEQ2TENS_DEFINE)
#undef SEQ2TENS_DEFINE

}  // extern "C"
