// All windows of a sequence in two scans of every block of steps. A block is as long as a window: a window is the end
// of a block and a beginning of the next. One scan goes from the block's end to its beginning and keeps the values of
// the steps that it has seen; the other goes through the next block and joins both to the window that ends there.
//
// Scans are in doubles whatever T is. The value of word w is h[w · width : (w + 1) · width], of the empty word 1.
#include "subwords.h"
#include "gemm.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {
namespace windows_detail {
namespace {

// How one step at an end of what has been seen changes a word, as offsets: h_word += a_letter · h_shorter.
struct Link {
  int64_t word, letter, shorter;
};

// Where steps are put: at the right end a word's letter is its last one, at the left end its first one.
struct End {
  const int64_t* letter;
  const int64_t* shorter;
  const Link* links;  // [words] long words first
};

template <class T>
struct Windows {
  const seq2tens_windows& call;
  const seq2tens_subwords& subwords;
  int64_t width;         // padded to whole vectors
  int64_t columns;       // inner products of a step
  int64_t starts;        // steps that a window may begin at
  int64_t blocks;        // of a sequence
  int64_t rows;          // windows of a sequence
  const T* weight;       // [features + 1, columns], the last row is the bias
  End left, right;

  Windows(const seq2tens_windows& call, Frame& frame)
      : call(call),
        subwords(*call.subwords),
        width(round_up(call.width, kWideLanes)),
        columns(call.components * width),
        starts(call.length - call.window + 1),
        blocks((starts + call.window - 1) / call.window),
        rows((starts + call.stride - 1) / call.stride),
        weight(pack_weight(frame)),
        left(make_end(subwords.first, subwords.rest, frame)),
        right(make_end(subwords.last, subwords.parent, frame)) {}

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
  End make_end(const int64_t* letter, const int64_t* shorter, Frame& frame) const {
    Link* links = frame.take<Link>(subwords.words);
    for (int64_t i = 0; i < subwords.words; ++i) {
      const int64_t word = subwords.order[i];
      links[i] = {word * width, letter[word] * width, shorter[word] * width};
    }
    return {letter, shorter, links};
  }
};

// One thread's memory for some blocks.
template <class T>
struct Scanner {
  const Windows<T>& windows;
  const seq2tens_windows& call;
  const seq2tens_subwords& subwords;
  const int64_t width, end_size;
  Frame frame;
  T* rows;      // [kRows, features + 1] steps, and 1 for the bias; all 0 where a step does not count
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

  // Inner products of `count` steps from one on, which is a row of x.
  void multiply_steps(int64_t step, int64_t count) {
    const int64_t inner = call.features + 1;
    for (int64_t begin = 0; begin < count; begin += kRows) {
      const int64_t some = std::min(kRows, count - begin);
      copy_steps(step + begin, some);
      multiply<T>({some, windows.columns, inner}, {rows, inner}, {windows.weight, windows.columns}, 0,
                  {products + begin * windows.columns, windows.columns});
    }
  }

  // From the block's end to its beginning; the first `starts` steps are those of windows.
  void scan_backwards(int64_t starts) {
    clear();
    for (int64_t t = call.window - 1; t >= 0; --t) {
      extend(windows.left, products + t * windows.columns);
      if (t >= starts) continue;
      for (int64_t q = 0; q < end_size; q += kWideLanes)
        store_wide(ends + t * end_size + q, load_wide(h + width + q));
    }
  }

  // Through the next block: windows that begin `place` steps after the beginning of their sequence, and later.
  void scan_forwards(int64_t place, int64_t starts, T* out) {
    clear();
    const int64_t size = subwords.levels * call.width;
    for (int64_t t = 0; t < starts; ++t) {
      if ((place + t) % call.stride == 0) write_window(t, out + (place + t) / call.stride * size);
      if (t + 1 < starts) extend(windows.right, products + t * windows.columns);
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

  void extend(const End& end, const T* a) {
    call.coefficients ? extend_lifted(end, a) : extend_plain(end, a);
  }

  void extend_plain(const End& end, const T* a) {
    for (int64_t i = 0; i < subwords.words; ++i) {
      const Link link = end.links[i];
      double* value = h + link.word;
      for (int64_t q = 0; q < width; q += kWideLanes)
        store(value + q, load(value + q) + load_wide(a + link.letter + q) * load(h + link.shorter + q));
    }
  }

  // A step may meet several letters.
  void extend_lifted(const End& end, const T* a) {
    for (int64_t i = 0; i < subwords.words; ++i) {
      const int64_t word = subwords.order[i], terms = std::min(call.lift_order, subwords.length[word]);
      for (int64_t q = 0; q < width; q += kWideLanes) {
        Wide value = load(h + word * width + q), product = fill(1.0);
        int64_t node = word;
        for (int64_t j = 0; j < terms; ++j) {
          product *= load_wide(a + end.letter[node] * width + q);
          node = end.shorter[node];
          value += call.coefficients[j] * product * load(h + node * width + q);
        }
        store(h + word * width + q, value);
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

// Some blocks, numbered through all sequences. The inner products of a block serve both scans that need them, so a
// thread takes neighbours; what it computes for a block does not depend on the others.
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
