// The LS2T recursion: a block of steps is multiplied by all vectors, into memory that fits into the cache, and scanned
// there. For every block, the backward pass repeats the scan from a state that the forward pass saved, then walks back.
// The products can be kept, too: that saves a quarter of the multiplications of a training step, and takes as much
// memory as the result.
//
// A task is a range of sequences and a group of functionals. How a call is divided into tasks only depends on shapes,
// and sums over tasks are taken in their order, so results do not depend on threads.
#include <cstring>

#include "ls2t_lifted.h"
#include "sums.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {
namespace {

struct Shares {
  int64_t slices;    // ranges of sequences
  int64_t groups;    // ranges of functionals
  int64_t width;     // functionals of a group, padded
  int64_t together;  // number of short sequences that share a matrix product
  int64_t threads;
  int64_t tasks() const { return slices * groups; }
};

Shares share_out(const seq2tens_ls2t& call) {
  constexpr int64_t kWorthATask = worth_a_task(1500000);  // multiplications, about 20 µs
  constexpr int64_t kMostGradients = int64_t{1} << 22;    // numbers in the weight gradients of all slices
  const int64_t columns = call.words->components * call.width;
  const int64_t worth = call.batch * call.length * columns * (call.features + 8) / kWorthATask;
  const int64_t room = std::max<int64_t>(2, kMostGradients / std::max<int64_t>(1, columns * call.features));
  Shares shares;
  shares.slices = std::max<int64_t>(1, std::min({call.batch, worth - worth % 2, room, int64_t{16}}));
  const int64_t vectors = round_up(call.width, kFunctionalLanes) / kFunctionalLanes;
  // a batch of one to three sequences is also divided by functionals
  const int64_t wanted = call.batch < 4 ? std::min<int64_t>(4, worth) / shares.slices : 1;
  const int64_t per_group = (vectors + std::max<int64_t>(1, wanted) - 1) / std::max<int64_t>(1, wanted);
  shares.width = std::max<int64_t>(1, per_group) * kFunctionalLanes;
  shares.groups = std::max<int64_t>(1, (vectors * kFunctionalLanes + shares.width - 1) / shares.width);
  shares.together = std::max<int64_t>(1, call.block / std::max<int64_t>(1, call.length));
  shares.threads = threads_worth(worth, call.threads);
  return shares;
}

// A pointer into an array that may be missing.
template <class T>
T* at(const void* array, int64_t offset) {
  return array ? static_cast<T*>(const_cast<void*>(array)) + offset : nullptr;
}

// A call with packed parameters: group by group, with functionals padded with zeros.
template <class T>
struct Recursion {
  const seq2tens_ls2t& call;
  const seq2tens_words& words;
  Shares shares;
  int64_t columns;      // columns of a group
  const T* panels;      // the packed weight of every group, [features, columns]
  const T* transposes;  // the packed transposes, for the backward pass only
  const T* bias;        // [groups, columns]
  const double* powers; // [groups, longest + 1, group width], with a lift only

  Recursion(const seq2tens_ls2t& call, Frame& frame, bool is_backward)
      : call(call), words(*call.words), shares(share_out(call)), columns(words.components * shares.width) {
    T* weight = frame.take<T>(shares.groups * call.features * columns);
    const T* given = static_cast<const T*>(call.weight);
    const int64_t rows = words.components * call.features, tasks = 8;
    for_each_task(tasks, threads_worth(rows * call.width / worth_a_task(1 << 16), call.threads), [&](int64_t task) {
      const Range range(rows, task, tasks);
      for (int64_t row = range.begin; row < range.end; ++row) {
        const int64_t component = row / call.features, feature = row % call.features;
        pack_row(given + row * call.width, weight + feature * columns + component * shares.width,
                 call.features * columns);
      }
    });
    panels = pack_groups(weight, false, frame);
    transposes = is_backward ? pack_groups(weight, true, frame) : nullptr;
    T* bias = frame.take_zeros<T>(shares.groups * columns);
    for (int64_t c = 0; call.bias && c < words.components; ++c)
      pack_row(static_cast<const T*>(call.bias) + c * call.width, bias + c * shares.width, columns);
    this->bias = bias;
    powers = is_lifted() ? pack_powers(frame) : nullptr;
  }

  bool is_lifted() const { return call.coefficients != nullptr; }
  int64_t blocks() const { return (call.length + call.block - 1) / call.block; }
  bool is_padded() const { return shares.groups * shares.width != call.width; }
  // The memory for products has no room for padded functionals.
  bool keeps_products() const { return call.products && shares.groups == 1 && !is_padded(); }
  // Whether inner products can be stored in the output: the states of a single chain replace them one by one.
  bool is_in_place() const {
    return call.out && !call.mask && !is_lifted() && shares.groups == 1 && !is_padded() && is_one_chain(words);
  }

 private:
  template <class N>
  void pack_row(const N* row, N* packed, int64_t group_stride) const {
    for (int64_t g = 0; g < shares.groups; ++g) {
      const int64_t start = g * shares.width, count = std::min(shares.width, call.width - start);
      std::copy(row + start, row + start + count, packed + g * group_stride);
      std::fill(packed + g * group_stride + count, packed + g * group_stride + shares.width, N(0));
    }
  }
  // Packs the weight of every group, or its transpose, as the right factor of a product.
  const T* pack_groups(const T* weight, bool transposed, Frame& frame) const {
    const int64_t outer = transposed ? call.features : columns, inner = transposed ? columns : call.features;
    const int64_t size = packed_size<T>(outer, inner);
    T* packed = frame.take<T>(shares.groups * size);
    for (int64_t g = 0; g < shares.groups; ++g)
      pack<T>({weight + g * outer * inner, columns, transposed}, outer, inner, packed + g * size);
    return packed;
  }
  const double* pack_powers(Frame& frame) const {
    const int64_t rows = words.longest + 1, size = rows * shares.width;
    double* packed = frame.take<double>(shares.groups * size);
    std::fill(packed, packed + shares.groups * size, 1.0);
    for (int64_t m = 0; call.powers && m < rows; ++m)
      pack_row(call.powers + m * call.width, packed + m * shares.width, size);
    return packed;
  }
};

// The sequences and functionals of a task, and the scratch memory of its thread.
template <class T>
struct Task {
  const Recursion<T>& recursion;
  const seq2tens_ls2t& call;
  Frame frame;
  int64_t group;
  Range sequences;
  int64_t first;        // first functional
  int64_t functionals;  // number of functionals, without padding
  const T* panels;
  const T* bias;
  Lift lift;
  T* rows;              // [block, features] valid rows without gaps, used with a mask
  T* products;          // [block, columns]
  double* states;       // [positions, group width]
  Vector<T>* letters;   // three vectors per letter of the longest word
  Wide* wide_letters;   // one per letter and one more

  Task(const Recursion<T>& recursion, int64_t index)
      : recursion(recursion),
        call(recursion.call),
        group(index / recursion.shares.slices),
        sequences(call.batch, index % recursion.shares.slices, recursion.shares.slices),
        first(group * recursion.shares.width),
        functionals(std::min(recursion.shares.width, call.width - first)),
        panels(recursion.panels + group * packed_size<T>(recursion.columns, call.features)),
        bias(recursion.bias + group * recursion.columns),
        lift{call.lift_order, call.coefficients,
             at<const double>(recursion.powers, group * (recursion.words.longest + 1) * recursion.shares.width)} {
    const int64_t most = most_rows(), longest = recursion.words.longest;
    rows = frame.take<T>(call.mask ? most * call.features : 0);
    products = frame.take<T>(most * recursion.columns);
    states = frame.take<double>(positions_of(recursion.words) * recursion.shares.width);
    letters = frame.take<Vector<T>>(3 * longest);
    wide_letters = frame.take<Wide>(longest + 1);
  }

  int64_t most_rows() const {
    return std::min(call.block, std::max<int64_t>(1, call.length)) * std::min(recursion.shares.together, call.batch);
  }
  // The steps of block `index` of a sequence, in the order of the scan.
  Range block_range(int64_t index) const {
    Range range(0, 0, 1);
    const int64_t begin = index * call.block, end = std::min(begin + call.block, call.length);
    range.begin = call.reverse ? call.length - end : begin;
    range.end = call.reverse ? call.length - begin : end;
    return range;
  }
  Steps steps(int64_t row, int64_t count) const {
    return {count, call.mask ? call.mask + row : nullptr, call.reverse != 0};
  }

  // The valid rows of x from `row` on, without gaps.
  struct Rows {
    const T* data;
    int64_t count;
  };
  Rows load_rows(int64_t row, int64_t count) const {
    const int64_t n = call.features;
    const T* x = static_cast<const T*>(call.x);
    if (!call.mask) return {x + row * n, count};
    int64_t counted = 0;
    for (int64_t i = row; i < row + count; ++i)
      if (call.mask[i]) std::copy(x + i * n, x + (i + 1) * n, rows + counted++ * n);
    return {rows, counted};
  }

  // Where the forward pass stores the products of the rows from `row` on.
  T* room_for_products(int64_t row) const {
    if (recursion.keeps_products()) return at<T>(call.products, row * recursion.columns);
    return recursion.is_in_place() ? at<T>(call.out, row * recursion.columns) : products;
  }
  void multiply_weight(Rows of, T* products) const {
    const int64_t columns = recursion.columns;
    multiply_packed<T>({of.count, columns, call.features}, {of.data, call.features}, panels, 0, {products, columns});
  }

  // Copies the states of a sequence to `values`, with a double for each position of the words.
  template <class Source>
  void read_states(double* values, const Source* source, bool owned_only) const {
    const seq2tens_words& words = recursion.words;
    const int64_t width = recursion.shares.width;
    for (int64_t p = 0; p < positions_of(words); ++p) {
      double* value = values + p * width;
      std::fill(value, value + width, 0.0);
      if (!source || (owned_only && !words.owned[p])) continue;
      const Source* row = source + words.state[p] * call.width + first;
      for (int64_t k = 0; k < functionals; ++k) value[k] = row[k];
    }
  }
  // The gradients of a shared state add up.
  void write_adjoints(const double* values, T* target) const {
    const seq2tens_words& words = recursion.words;
    for (int64_t p = 0; target && p < positions_of(words); ++p) {
      const double* value = values + p * recursion.shares.width;
      T* row = target + words.state[p] * call.width + first;
      for (int64_t k = 0; k < functionals; ++k)
        row[k] = words.owned[p] ? static_cast<T>(value[k]) : static_cast<T>(row[k] + value[k]);
    }
  }
  template <class Target>
  void write_states(const double* values, Target* target) const {
    const seq2tens_words& words = recursion.words;
    for (int64_t p = 0; target && p < positions_of(words); ++p) {
      if (!words.owned[p]) continue;
      const double* value = values + p * recursion.shares.width;
      Target* row = target + words.state[p] * call.width + first;
      for (int64_t k = 0; k < functionals; ++k) row[k] = static_cast<Target>(value[k]);
    }
  }
};

template <class T>
Scan<T> scan_of(const Task<T>& task, Steps steps, int64_t rows, const T* factors) {
  const Recursion<T>& r = task.recursion;
  return {steps,     rows,        r.shares.width, task.functionals, factors, r.columns,
          task.bias, task.states, nullptr,        r.words.levels * r.call.width, r.call.width};
}

// Scans one block of one sequence.
template <class T>
void scan_block(const Task<T>& task, const Scan<T>& scan) {
  for (int64_t w = 0; w < task.recursion.words.count; ++w) {
    const Word word = word_of(task.recursion.words, w);
    if (task.recursion.is_lifted())
      scan_lifted_word(scan, word, task.lift, task.wide_letters);
    else
      scan_any_word(scan, word, task.letters);
  }
}

template <class T>
void forward_task(const Recursion<T>& r, int64_t index) {
  Task<T> task(r, index);
  const seq2tens_ls2t& call = r.call;
  const int64_t state_size = r.words.states * call.width, row_size = r.words.levels * call.width;
  for (int64_t b = task.sequences.begin; call.length == 0 && b < task.sequences.end; ++b) {
    task.read_states(task.states, at<const T>(call.state, b * state_size), false);
    task.write_states(task.states, at<T>(call.final, b * state_size));
  }
  for (int64_t b = task.sequences.begin; b < task.sequences.end; b += r.shares.together) {
    const int64_t number = std::min(r.shares.together, task.sequences.end - b);
    for (int64_t i = 0; i < r.blocks(); ++i) {
      const Range range = task.block_range(i);
      const int64_t row = b * call.length + range.begin;
      const auto rows = task.load_rows(row, number * range.size());
      T* factors = task.room_for_products(row);
      task.multiply_weight(rows, factors);
      if (r.keeps_products())  // invalid steps have no products, but the whole array must be initialised
        std::fill(factors + rows.count * r.columns, factors + number * range.size() * r.columns, T(0));
      for (int64_t k = 0; k < number; ++k) {
        const int64_t sequence = b + k, here = row + k * call.length;
        if (i == 0) task.read_states(task.states, at<const T>(call.state, sequence * state_size), false);
        if (call.checkpoints) task.write_states(task.states, call.checkpoints + (sequence * r.blocks() + i) * state_size);
        const Steps steps = task.steps(here, range.size());
        Scan<T> scan = scan_of<T>(task, steps, steps.rows(), factors);
        scan.out = at<T>(call.out, here * row_size + task.first);
        scan_block(task, scan);
        factors += scan.rows * r.columns;
        if (i == r.blocks() - 1) task.write_states(task.states, at<T>(call.final, sequence * state_size));
      }
    }
  }
}

// Gradients of the parameters: every task has its own sums, in doubles.
template <class T>
struct ParameterSums {
  double* weight;        // [tasks, features, columns]
  double* bias;          // [tasks, columns]
  double* coefficients;  // [tasks, lift order, group width]
  double* powers;        // [tasks, longest + 1, group width]

  ParameterSums(const Recursion<T>& r, Frame& frame) {
    const int64_t tasks = r.shares.tasks();
    weight = frame.take<double>(tasks * r.call.features * r.columns);
    bias = frame.take_zeros<double>(tasks * r.columns);
    coefficients = frame.take_zeros<double>(r.is_lifted() ? tasks * r.call.lift_order * r.shares.width : 0);
    powers = frame.take_zeros<double>(r.is_lifted() ? tasks * (r.words.longest + 1) * r.shares.width : 0);
  }
};

template <class T>
struct BackwardTask : Task<T> {
  using Task<T>::call;
  using Task<T>::recursion;
  const seq2tens_ls2t_gradients& given;
  double* adjoints;   // [positions, group width]
  T* dfactors;        // [block, columns]
  T* dx;              // gradients of all sequences, through this group
  T* dx_rows;         // [block, features]
  const T* transpose; // the packed transpose of the group's weight
  T* part;            // [columns]
  Vector<T>* path;    // [block, longest]
  LiftGradients lift_gradients;
  ProductSum<T> dweight;
  double* dbias;

  BackwardTask(const Recursion<T>& r, int64_t index, const seq2tens_ls2t_gradients& given,
               const ParameterSums<T>& sums, T* dx)
      : Task<T>(r, index),
        given(given),
        dx(dx),
        transpose(r.transposes + this->group * packed_size<T>(call.features, r.columns)),
        dweight(sums.weight + index * call.features * r.columns, {call.features, r.columns}, call.features, this->frame),
        dbias(sums.bias + index * r.columns) {
    const int64_t most = this->most_rows(), longest = r.words.longest, steps = std::min(call.block, call.length);
    Frame& frame = this->frame;
    adjoints = frame.template take<double>(positions_of(r.words) * r.shares.width);
    dfactors = frame.template take<T>(most * r.columns);
    dx_rows = frame.template take<T>(call.mask ? most * call.features : 0);
    part = frame.template take<T>(r.columns);
    const bool lifted = r.is_lifted();
    path = frame.template take<Vector<T>>(lifted ? 0 : steps * longest);
    lift_gradients = {
        sums.coefficients + (lifted ? index * call.lift_order * r.shares.width : 0),
        sums.powers + (lifted ? index * (longest + 1) * r.shares.width : 0),
        frame.template take<Wide>(lifted ? steps * (longest + 1) : 0),
        this->wide_letters,
        frame.template take<Wide>(longest + 1),
        frame.template take<Wide>(lifted ? call.lift_order : 0),
    };
  }

  // Takes the adjoints from the states after a block to those before it, and finds the gradients of its inner products.
  void retrace_block(const Scan<T>& scan, const T* dout, T* drows) {
    const Retrace<T> back{scan,  dout, adjoints,     drows, recursion.is_lifted() || recursion.words.shared != 0,
                          path, this->letters};
    for (int64_t w = 0; w < recursion.words.count; ++w) {
      const Word word = word_of(recursion.words, w);
      if (recursion.is_lifted())
        retrace_lifted_word(back, word, this->lift, lift_gradients);
      else
        retrace_any_word(back, word);
    }
  }

  // Finds the gradients of x, weight and bias from those of the inner products of some rows.
  void pull_back(int64_t row, int64_t steps, const T* rows, int64_t count) {
    const int64_t n = call.features;
    T* target = call.mask ? dx_rows : dx + row * n;
    multiply_packed<T>({count, n, recursion.columns}, {dfactors, recursion.columns}, transpose, 0, {target, n});
    dweight.add(rows, dfactors, count);
    if (given.bias) add_rows(dfactors, count, recursion.columns, part, dbias);
    if (call.mask) spread_rows(row, steps);
  }

  // Copies rows without gaps to their steps; other steps become 0.
  void spread_rows(int64_t row, int64_t steps) {
    const int64_t n = call.features;
    const T* source = dx_rows;
    for (int64_t i = row; i < row + steps; ++i) {
      if (call.mask[i]) {
        std::copy(source, source + n, dx + i * n);
        source += n;
      } else {
        std::fill(dx + i * n, dx + (i + 1) * n, T(0));
      }
    }
  }
};

template <class T>
void backward_task(BackwardTask<T>& task) {
  const Recursion<T>& r = task.recursion;
  const seq2tens_ls2t& call = r.call;
  const seq2tens_ls2t_gradients& given = task.given;
  const int64_t state_size = r.words.states * call.width, row_size = r.words.levels * call.width;
  for (int64_t b = task.sequences.begin; call.length == 0 && b < task.sequences.end; ++b) {
    task.read_states(task.adjoints, at<const T>(given.final, b * state_size), true);
    task.write_adjoints(task.adjoints, at<T>(given.state, b * state_size));
  }
  for (int64_t b = task.sequences.begin; b < task.sequences.end; b += r.shares.together) {
    const int64_t number = std::min(r.shares.together, task.sequences.end - b);
    for (int64_t i = r.blocks() - 1; i >= 0; --i) {
      const Range range = task.block_range(i);
      const int64_t row = b * call.length + range.begin;
      const auto rows = task.load_rows(row, number * range.size());
      const T* factors = r.keeps_products() ? task.room_for_products(row) : task.products;
      if (!r.keeps_products()) task.multiply_weight(rows, task.products);
      if (r.words.shared || r.is_lifted())
        std::fill(task.dfactors, task.dfactors + rows.count * r.columns, T(0));
      T* dfactors = task.dfactors;
      for (int64_t k = 0; k < number; ++k) {
        const int64_t sequence = b + k, here = row + k * call.length;
        if (i == r.blocks() - 1)
          task.read_states(task.adjoints, at<const T>(given.final, sequence * state_size), true);
        task.read_states(task.states, call.checkpoints + (sequence * r.blocks() + i) * state_size, false);
        const Steps steps = task.steps(here, range.size());
        const Scan<T> scan = scan_of<T>(task, steps, steps.rows(), factors);
        task.retrace_block(scan, at<const T>(given.out, here * row_size + task.first), dfactors);
        factors += scan.rows * r.columns;
        dfactors += scan.rows * r.columns;
        if (i == 0) task.write_adjoints(task.adjoints, at<T>(given.state, sequence * state_size));
      }
      task.pull_back(row, number * range.size(), rows.data, rows.count);
    }
  }
  task.dweight.finish();
}

// Sums a row of functionals over the slices of every group, in their order. Each task has an array of `size` numbers,
// in which the row begins at `place`.
template <class Target>
void sum_slices(const Shares& shares, const double* parts, int64_t size, int64_t place, Target* row, int64_t width) {
  for (int64_t start = 0; start < width; start += shares.width) {
    const double* part = parts + start / shares.width * shares.slices * size + place;
    for (int64_t k = 0; k < std::min(shares.width, width - start); ++k) {
      double total = 0;
      for (int64_t s = 0; s < shares.slices; ++s) total += part[s * size + k];
      row[start + k] = static_cast<Target>(total);
    }
  }
}

// Writes the sums over tasks to the gradients of the parameters.
template <class T>
void sum_parameters(const Recursion<T>& r, const ParameterSums<T>& sums, const seq2tens_ls2t_gradients& out,
                    Frame& frame) {
  const seq2tens_ls2t& call = r.call;
  const int64_t rows = r.words.components * call.features, width = r.shares.width;
  const int64_t tasks = 8, worth = rows * call.width * r.shares.slices / worth_a_task(1 << 15);
  for_each_task(tasks, threads_worth(worth, call.threads), [&](int64_t task) {
    const Range range(rows, task, tasks);
    for (int64_t row = range.begin; row < range.end; ++row) {
      const int64_t place = row % call.features * r.columns + row / call.features * width;
      sum_slices(r.shares, sums.weight, call.features * r.columns, place, at<T>(out.weight, row * call.width),
                 call.width);
    }
  });
  for (int64_t c = 0; out.bias && c < r.words.components; ++c)
    sum_slices(r.shares, sums.bias, r.columns, c * width, at<T>(out.bias, c * call.width), call.width);
  double* row = frame.take<double>(call.width);
  for (int64_t j = 0; out.coefficients && j < call.lift_order; ++j) {
    sum_slices(r.shares, sums.coefficients, call.lift_order * width, j * width, row, call.width);
    out.coefficients[j] = 0;
    for (int64_t k = 0; k < call.width; ++k) out.coefficients[j] += row[k];
  }
  for (int64_t m = 0; out.powers && m <= r.words.longest; ++m)
    sum_slices(r.shares, sums.powers, (r.words.longest + 1) * width, m * width, out.powers + m * call.width,
               call.width);
}

template <class T>
void forward(const seq2tens_ls2t& call) {
  Frame frame;
  const Recursion<T> recursion(call, frame, false);
  for_each_task(recursion.shares.tasks(), recursion.shares.threads,
                [&](int64_t task) { forward_task(recursion, task); });
}

template <class T>
void backward(const seq2tens_ls2t_gradients& given) {
  Frame frame;
  const seq2tens_ls2t& call = *given.call;
  const Recursion<T> r(call, frame, true);
  const ParameterSums<T> sums(r, frame);
  const int64_t size = call.batch * call.length * call.features;
  T* dx = static_cast<T*>(given.x);
  T* others = frame.take<T>((r.shares.groups - 1) * size);  // gradients of x through the other groups
  for_each_task(r.shares.tasks(), r.shares.threads, [&](int64_t index) {
    const int64_t group = index / r.shares.slices;
    BackwardTask<T> task(r, index, given, sums, group == 0 ? dx : others + (group - 1) * size);
    backward_task(task);
  });
  for (int64_t g = 0; g + 1 < r.shares.groups; ++g)
    for (int64_t k = 0; k < size; ++k) dx[k] += others[g * size + k];
  sum_parameters(r, sums, given, frame);
}

}  // namespace

void ls2t_forward(const seq2tens_ls2t& call) { call.is_double ? forward<double>(call) : forward<float>(call); }

void ls2t_backward(const seq2tens_ls2t_gradients& given) {
  given.call->is_double ? backward<double>(given) : backward<float>(given);
}

}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
