// Threads, and memory that each of them keeps for the next call.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#ifdef _OPENMP
#include <omp.h>
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SEQ2TENS_REDZONES
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SEQ2TENS_REDZONES
#endif
#ifdef SEQ2TENS_REDZONES
#include <sanitizer/asan_interface.h>
#endif

#include "simd.h"

#ifndef SEQ2TENS_TASK_DIVISOR
#define SEQ2TENS_TASK_DIVISOR 1
#endif

namespace seq2tens {
namespace SEQ2TENS_ISA {

// The amount of work from which a task is worth a thread. Checks make it small, so that tiny calls have many tasks.
constexpr int64_t worth_a_task(int64_t amount) { return 1 + (amount - 1) / SEQ2TENS_TASK_DIVISOR; }

// Pieces of one allocation look like one to the address sanitizer unless it is told what lies between them.
#ifdef SEQ2TENS_REDZONES
constexpr int64_t kRedzone = 64;
inline void forbid(char* memory, int64_t bytes) { ASAN_POISON_MEMORY_REGION(memory, bytes); }
inline void permit(char* memory, int64_t bytes) { ASAN_UNPOISON_MEMORY_REGION(memory, bytes); }
#else
constexpr int64_t kRedzone = 0;
inline void forbid(char*, int64_t) {}
inline void permit(char*, int64_t) {}
#endif

// Scratch memory of a thread: pieces that begin at cache lines, taken one after the other and given back in the
// opposite order. Chunks stay for the next call, joined into one.
class Scratch {
 public:
  static Scratch& of_thread() {
    static thread_local Scratch scratch;
    return scratch;
  }
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { free_from(first_); }

 private:
  friend class Frame;
  struct alignas(64) Chunk {
    Chunk* next;
    int64_t size;
  };
  static constexpr int64_t kSmallest = 1 << 16;
  static constexpr int64_t kLargestKept = int64_t{1} << 27;

  void* take(int64_t bytes) {
    const int64_t size = round_up(bytes + kRedzone, 64);
    if (!chunk_ || used_ + size > chunk_->size) advance(size);
    char* memory = reinterpret_cast<char*>(chunk_ + 1) + used_;
    permit(memory, bytes);
    forbid(memory + bytes, size - bytes);
    used_ += size;
    return memory;
  }

  // To the next chunk, or a new one if that is too small.
  void advance(int64_t bytes) {
    Chunk*& next = chunk_ ? chunk_->next : first_;
    if (next && next->size < bytes) {
      free_from(next);
      next = nullptr;
    }
    if (!next) next = allocate(std::max({bytes, kSmallest, wanted_}));
    chunk_ = next;
    used_ = 0;
  }

  static Chunk* allocate(int64_t size) {
    void* memory = std::aligned_alloc(64, static_cast<size_t>(size) + sizeof(Chunk));
    if (!memory) throw std::bad_alloc();
    return new (memory) Chunk{nullptr, size};
  }

  static void free_from(Chunk* chunk) {
    while (chunk) {
      Chunk* next = chunk->next;
      std::free(chunk);
      chunk = next;
    }
  }

  void give_back(Chunk* chunk, int64_t used) {
    chunk_ = chunk;
    used_ = used;
    if (chunk) forbid(reinterpret_cast<char*>(chunk + 1) + used, chunk->size - used);
    if (!chunk || (chunk == first_ && used == 0)) tidy();
  }

  // Nothing is in use: the next call gets one chunk as large as all of these, unless that is very large.
  void tidy() {
    int64_t total = 0;
    for (Chunk* chunk = first_; chunk; chunk = chunk->next) total += chunk->size;
    wanted_ = total > kLargestKept ? 0 : total;
    if (first_ && (first_->next || total > kLargestKept)) {
      free_from(first_);
      first_ = nullptr;
    }
    chunk_ = nullptr;
    used_ = 0;
  }

  Chunk* first_ = nullptr;
  Chunk* chunk_ = nullptr;  // the one in use, NULL if none is
  int64_t used_ = 0;        // bytes of it
  int64_t wanted_ = 0;
};

// What is taken from a frame is given back when it ends.
class Frame {
 public:
  Frame() : scratch_(Scratch::of_thread()), chunk_(scratch_.chunk_), used_(scratch_.used_) {}
  ~Frame() { scratch_.give_back(chunk_, used_); }
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
  Scratch::Chunk* chunk_;
  int64_t used_;
};

// Calls run(task) for every task. Which thread runs a task must not change what it computes. A region may get
// fewer threads than it asks for, so it goes by the number it has. Throws std::bad_alloc if a task did.
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

// The part of `count` things that is task `task` of `tasks`.
struct Range {
  int64_t begin, end;
  Range(int64_t count, int64_t task, int64_t tasks) : begin(count * task / tasks), end(count * (task + 1) / tasks) {}
  int64_t size() const { return end - begin; }
};

}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
