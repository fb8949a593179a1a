// All windows of a sequence in two scans of every block of steps. A block is as long as a window, so a window is the
// end of one block and the beginning of the next. One scan goes from the end of a block to its beginning and keeps the
// values of the steps so far. The other goes through the next block and joins both parts to the window that ends there.
//
// Scans are in doubles for any T. The value of word w is h[w · width : (w + 1) · width]; that of the empty word is 1.
#include "subwords.h"
#include "gemm.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {
namespace windows_detail {
namespace {

// The end of a word at which a step is added: its last letter at the right end, its first letter at the left end.
struct End {
  const int64_t* letter;   // [words + 1]
  const int64_t* shorter;  // [words + 1] the word without it
};

template <class T>
struct Windows {
  const seq2tens_windows& call;
  const seq2tens_subwords& subwords;
  int64_t width;         // padded to whole vectors
  int64_t columns;       // inner products per step
  int64_t starts;        // steps at which a window may begin
  int64_t blocks;        // blocks per sequence
  int64_t rows;          // windows per sequence
  const T* weight;       // [features + 1, columns], the last row is the bias

  Windows(const seq2tens_windows& call, Frame& frame)
      : call(call),
        subwords(*call.subwords),
        width(round_up(call.width, kWideLanes)),
        columns(call.components * width),
        starts(call.length - call.window + 1),
        blocks((starts + call.window - 1) / call.window),
        rows((starts + call.stride - 1) / call.stride),
        weight(pack_weight(frame)) {}

 private:
  const T* pack_weight(Frame& frame) const {
    T* packed = frame.take_zeros<T>((call.features + 1) * columns);
    const T *given = static_cast<const T*>(call.weight), *bias = static_cast<const T*>(call.bias);
    for (int64_t c = 0; c < call.components; ++c) {
      T* column = packed + c * width;
      for (int64_t k = 0; k < call.features; ++k, given += call.width, column += columns)
        std::copy(given, given + call.width, column);
      if (bias) std::copy(bias + c * call.width, bias + (c + 1) * call.width, column);
    }
    return packed;
  }
};

// Scans blocks, with scratch memory of one thread.
template <class T>
struct Scanner {
  const Windows<T>& windows;
  const seq2tens_windows& call;
  const seq2tens_subwords& subwords;
  const int64_t width, end_size;
  Frame frame;
  T* rows;      // [kRows, features + 1] steps, and 1 for the bias; all 0 for an invalid step
  T* products;  // [window, columns] inner products of a block
  T* ends;      // [window, states, width] values from a step to the end of its block
  double* h;    // [words + 1, width]

  explicit Scanner(const Windows<T>& windows)
      : windows(windows),
        call(windows.call),
        subwords(windows.subwords),
        width(windows.width),
        end_size(subwords.states * width),
        rows(frame.take<T>(kRows * (call.features + 1))),
        products(frame.take<T>(call.window * windows.columns)),
        ends(frame.take<T>(std::min(call.window, windows.starts) * end_size)),
        h(frame.take<double>((subwords.words + 1) * width)) {}

  // Finds the inner products of `count` steps; `step` is the row of x of the first one.
  void multiply_steps(int64_t step, int64_t count) {
    const int64_t inner = call.features + 1;
    for (int64_t begin = 0; begin < count; begin += kRows) {
      const int64_t some = std::min(kRows, count - begin);
      copy_steps(step + begin, some);
      multiply<T>({some, windows.columns, inner}, {rows, inner}, {windows.weight, windows.columns}, 0,
                  {products + begin * windows.columns, windows.columns});
    }
  }

  // Scans a block from its end to its beginning; windows begin at its first `starts` steps.
  void scan_backwards(int64_t starts) {
    clear();
    for (int64_t t = call.window - 1; t >= 0; --t) {
      extend({subwords.first, subwords.rest}, products + t * windows.columns);
      if (t >= starts) continue;
      for (int64_t q = 0; q < end_size; q += kWideLanes)
        store_wide(ends + t * end_size + q, load_wide(h + width + q));
    }
  }

  // Scans the next block; the first window begins at step `place` of its sequence.
  void scan_forwards(int64_t place, int64_t starts, T* out) {
    clear();
    const int64_t size = subwords.levels * call.width;
    for (int64_t t = 0; t < starts; ++t) {
      if ((place + t) % call.stride == 0) write_window(t, out + (place + t) / call.stride * size);
      if (t + 1 < starts) extend({subwords.last, subwords.parent}, products + t * windows.columns);
    }
  }

 private:
  static constexpr int64_t kRows = 128;

  void copy_steps(int64_t step, int64_t count) {
    const int64_t n = call.features;
    for (int64_t i = 0; i < count; ++i) {
      T* row = rows + i * (n + 1);
      const T* source = static_cast<const T*>(call.x) + (step + i) * n;
      const bool counts = !call.mask || call.mask[step + i];
      std::fill(row, row + n + 1, T(counts));
      if (counts) std::copy(source, source + n, row);
    }
  }

  void clear() {
    std::fill(h, h + width, 1.0);
    std::fill(h + width, h + (subwords.words + 1) * width, 0.0);
  }

  // Adds a step at one end of all words: it is paired with the letter there or, with a lift, with several letters. Long
  // words come first, because they need the old values of short ones.
  void extend(End end, const T* a) {
    const double *c = call.coefficients, first = c ? c[0] : 1.0;
    const int64_t size = width, lift_order = c ? call.lift_order : 1;
    double* h = this->h;
    for (int64_t i = 0; i < subwords.words; ++i) {
      const int64_t word = subwords.order[i], terms = std::min(lift_order, subwords.length[word]);
      const T* letter = a + end.letter[word] * size;
      double *value = h + word * size, *shorter = h + end.shorter[word] * size;
      for (int64_t q = 0; q < size; q += kWideLanes)
        store(value + q, load(value + q) + first * load_wide(letter + q) * load(shorter + q));
      for (int64_t q = 0; terms > 1 && q < size; q += kWideLanes) {
        Wide product = load_wide(letter + q), sum = load(value + q);
        for (int64_t j = 1, node = end.shorter[word]; j < terms; ++j) {
          product *= load_wide(a + end.letter[node] * size + q);
          node = end.shorter[node];
          sum += c[j] * product * load(h + node * size + q);
        }
        store(value + q, sum);
      }
    }
  }

  void write_window(int64_t t, T* out) const {
    const T* end = ends + t * end_size;
    for (int64_t level = 0; level < subwords.levels; ++level, out += call.width)
      for (int64_t q = 0; q < width; q += kWideLanes) {
        const Wide value = join_word<Wide>(
            subwords, subwords.output[level], [&](int64_t word) { return load_wide(end + (word - 1) * width + q); },
            [&](int64_t word) { return load(h + word * width + q); });
        store_wide_some(out + q, value, call.width - q);
      }
  }
};

// Runs some blocks, numbered through all sequences. Two scans need the inner products of a block, so a thread gets
// adjacent blocks; its results for a block do not depend on the others.
template <class T>
void run_blocks(const Windows<T>& windows, Range range) {
  Scanner<T> scanner(windows);
  const seq2tens_windows& call = windows.call;
  const int64_t out_size = windows.rows * windows.subwords.levels * call.width;
  for (int64_t block = range.begin; block < range.end; ++block) {
    const int64_t sequence = block / windows.blocks, begin = block % windows.blocks * call.window;
    const int64_t step = sequence * call.length + begin, starts = std::min(call.window, windows.starts - begin);
    if (block == range.begin || begin == 0) scanner.multiply_steps(step, call.window);
    scanner.scan_backwards(starts);
    scanner.multiply_steps(step + call.window, std::min(call.window, call.length - call.window - begin));
    scanner.scan_forwards(begin, starts, static_cast<T*>(call.out) + sequence * out_size);
  }
}

template <class T>
void run(const seq2tens_windows& call) {
  Frame frame;
  const Windows<T> windows(call, frame);
  const int64_t blocks = call.batch * windows.blocks;
  const int64_t tasks = std::max<int64_t>(1, std::min(call.threads, blocks));
  for_each_task(tasks, call.threads, [&](int64_t task) { run_blocks(windows, Range(blocks, task, tasks)); });
}

}  // namespace
}  // namespace windows_detail

void slide_windows(const seq2tens_windows& call) {
  call.is_double ? windows_detail::run<double>(call) : windows_detail::run<float>(call);
}

}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
