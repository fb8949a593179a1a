// All kernels for one instruction set. CMake compiles this file once for each set, with its name as the namespace
// SEQ2TENS_ISA, so that code for one processor is never linked into that for another.
#include "kernels.h"

#include <new>

#include "batch_norm.cpp"
#include "convolution.cpp"
#include "difference.cpp"
#include "full_map.cpp"
#include "intervals.cpp"
#include "ls2t.cpp"
#include "pooling.cpp"
#include "windows.cpp"

namespace seq2tens {
namespace SEQ2TENS_ISA {
namespace {

// Runs a kernel; returns 1 if there is not enough memory.
template <class Call>
int64_t guarded(void (*run)(const Call&), const Call* call) {
  try {
    run(*call);
    return 0;
  } catch (const std::bad_alloc&) {
    return 1;
  }
}

#define SEQ2TENS_ENTRY(name, call) \
  int64_t entry_##name(const call* c) { return guarded<call>(name, c); }
SEQ2TENS_OPERATIONS(SEQ2TENS_ENTRY)
#undef SEQ2TENS_ENTRY

}  // namespace

extern const Kernels kernels;
const Kernels kernels = {
#define SEQ2TENS_ADDRESS(name, call) entry_##name,
    SEQ2TENS_OPERATIONS(SEQ2TENS_ADDRESS)
#undef SEQ2TENS_ADDRESS
};

}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
