// Threads, and scratch memory that each of them keeps for the next call.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>
#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SEQ2TENS_FRESH_MEMORY
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SEQ2TENS_FRESH_MEMORY
#endif

#include "simd.h"

#ifndef SEQ2TENS_TASK_DIVISOR
#define SEQ2TENS_TASK_DIVISOR 1
#endif

namespace seq2tens {
namespace SEQ2TENS_ISA {

// The amount of work that justifies a task. The checks reduce it, so that tiny calls have many tasks.
constexpr int64_t worth_a_task(int64_t amount) { return 1 + (amount - 1) / SEQ2TENS_TASK_DIVISOR; }

// How many threads to use for `worth` tasks of about 20 µs each. Waking another thread and waiting for it takes some
// 40 µs on two cores of a virtual machine (AMD EPYC), so with fewer than four tasks per thread one thread is faster.
// Results do not depend on which thread runs a task.
inline int64_t threads_worth(int64_t worth, int64_t threads) {
  constexpr int64_t kTasksPerThread = 4;
  return std::max<int64_t>(1, std::min(threads, worth / kTasksPerThread));
}

// The address sanitizer and valgrind do not detect overruns within recycled memory, so with them nothing is recycled.
#ifdef SEQ2TENS_FRESH_MEMORY
constexpr bool kRecycle = false;
#else
constexpr bool kRecycle = true;
#endif

// Scratch memory of a thread: pieces aligned to cache lines, taken one after the other and given back in the opposite
// order. They are kept for the next call, unless their total size is very large.
class Scratch {
 public:
  static Scratch& of_thread() {
    static thread_local Scratch scratch;
    return scratch;
  }
  void* take(int64_t bytes) {
    if (used_ == pieces_.size()) pieces_.emplace_back();
    Piece& piece = pieces_[used_++];
    if (piece.size < bytes || !piece.memory) {
      piece.memory.reset();  // free the old piece before allocating the new one
      piece.size = 0;
      piece.memory.reset(::operator new(static_cast<size_t>(bytes), kCacheLine));
      piece.size = bytes;
    }
    return piece.memory.get();
  }
  size_t used() const { return used_; }
  void give_back_from(size_t first) {
    used_ = first;
    if (!kRecycle) pieces_.resize(first);
    int64_t total = 0;
    for (size_t i = 0; first == 0 && i < pieces_.size(); ++i) total += pieces_[i].size;
    if (total > kLargestKept) pieces_.clear();
  }

 private:
  static constexpr std::align_val_t kCacheLine{64};
  static constexpr int64_t kLargestKept = int64_t{1} << 27;
  struct Free {
    void operator()(void* memory) const { ::operator delete(memory, kCacheLine); }
  };
  struct Piece {
    std::unique_ptr<void, Free> memory;
    int64_t size = 0;
  };
  std::vector<Piece> pieces_;
  size_t used_ = 0;
};

// Memory taken from a frame is given back when the frame ends.
class Frame {
 public:
  Frame() : scratch_(Scratch::of_thread()), first_(scratch_.used()) {}
  ~Frame() { scratch_.give_back_from(first_); }
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  template <class T>
  T* take(int64_t count) {
    return static_cast<T*>(scratch_.take(count * static_cast<int64_t>(sizeof(T))));
  }
  template <class T>
  T* take_zeros(int64_t count) {
    T* memory = take<T>(count);
    std::fill(memory, memory + count, T(0));
    return memory;
  }

 private:
  Scratch& scratch_;
  size_t first_;
};

// Calls run(task) for every task. The result of a task must not depend on the thread that runs it. A parallel region
// may get fewer threads than requested, so tasks are distributed by the actual number. Throws std::bad_alloc if a task
// did.
template <class Run>
void for_each_task(int64_t tasks, int64_t threads, const Run& run) {
  std::atomic<bool> out_of_memory{false};
  const int team = static_cast<int>(std::max<int64_t>(1, std::min(tasks, threads)));
#ifdef _OPENMP
#pragma omp parallel num_threads(team) if (team > 1)
#endif
  {
    int64_t first = 0, stride = 1;
#ifdef _OPENMP
    first = omp_get_thread_num();
    stride = omp_get_num_threads();
#endif
    try {
      for (int64_t task = first; task < tasks; task += stride) run(task);
    } catch (const std::bad_alloc&) {
      out_of_memory = true;
    }
  }
  (void)team;
  if (out_of_memory) throw std::bad_alloc();
}

// The part of `count` items that belongs to task `task` of `tasks`.
struct Range {
  int64_t begin, end;
  Range(int64_t begin, int64_t end) : begin(begin), end(end) {}
  Range(int64_t count, int64_t task, int64_t tasks) : begin(count * task / tasks), end(count * (task + 1) / tasks) {}
  int64_t size() const { return end - begin; }
};

}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
