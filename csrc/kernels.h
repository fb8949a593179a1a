// The kernels of one instruction set, as a table that library.cpp chooses from.
#pragma once
#include "seq2tens.h"

namespace seq2tens {

struct Kernels {
#define SEQ2TENS_MEMBER(name, call) int64_t (*name)(const call*);
  SEQ2TENS_OPERATIONS(SEQ2TENS_MEMBER)
#undef SEQ2TENS_MEMBER
};

}  // namespace seq2tens
