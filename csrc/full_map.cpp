// The full map over whole sequences. States are doubles whatever T is. Where only the last state is wanted its top
// level is a sum over time of products h ⊗ x, taken for a block of steps at once. The backward pass starts every block
// from a state that the forward pass kept, runs it again, and walks back; the top level is never needed for that.
//
// A task is a range of groups of sequences. How a call is cut up depends on shapes only.
#include "full_map_steps.h"

#include <type_traits>
#include <utility>

#include "parallel.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {
namespace full_map_detail {
namespace {

// One round of a transposition: exchanges lanes between two vectors, S of every 2 S.
template <int64_t S, int64_t... K>
inline void exchange(Wide& a, Wide& b, std::integer_sequence<int64_t, K...>) {
#if defined(__clang__)
  const Wide low = __builtin_shufflevector(a, b, (K & S ? kWideLanes + K - S : K)...);
  b = __builtin_shufflevector(a, b, (K & S ? kWideLanes + K : K + S)...);
#else
  typedef int64_t Places __attribute__((vector_size(kVectorBytes)));
  const Wide low = __builtin_shuffle(a, b, Places{(K & S ? kWideLanes + K - S : K)...});
  b = __builtin_shuffle(a, b, Places{(K & S ? kWideLanes + K : K + S)...});
#endif
  a = low;
}

template <int64_t S>
inline void transpose_from(Wide* square) {
  using Lanes = std::make_integer_sequence<int64_t, kWideLanes>;
  if constexpr (S < kWideLanes) {
    for (int64_t i = 0; i < kWideLanes; ++i)
      if (!(i & S)) exchange<S>(square[i], square[i + S], Lanes());
    transpose_from<2 * S>(square);
  }
}

// Numbers of the sequences of a group: of the first one, and from one to the next.
template <class T>
struct Columns {
  T* first;
  int64_t stride;
  int64_t present;  // sequences; where eight go side by side, the others are 0
};

// target[row(q)] = number q of every sequence.
template <bool Side, class T, class Row>
void read_columns(Columns<const T> source, int64_t count, double* target, const Row& row) {
  int64_t q = 0;
  if constexpr (Side) {
    for (; q + kWideLanes <= count; q += kWideLanes)
      for (int64_t first = 0; first < kSide; first += kWideLanes) {
        Wide square[kWideLanes];
        for (int64_t w = 0; w < kWideLanes; ++w)
          square[w] = first + w < source.present ? load_wide(source.first + (first + w) * source.stride + q) : Wide{};
        transpose_from<1>(square);
        for (int64_t k = 0; k < kWideLanes; ++k) store(target + row(q + k) * kSide + first, square[k]);
      }
    for (; q < count; ++q)
      for (int64_t w = 0; w < kSide; ++w)
        target[row(q) * kSide + w] = w < source.present ? source.first[w * source.stride + q] : T(0);
  } else {
    for (; q < count; ++q) target[row(q)] = source.first[q];
  }
}

// The other way round.
template <bool Side, class T, class Row>
void write_columns(const double* source, Columns<T> target, int64_t count, const Row& row) {
  int64_t q = 0;
  if constexpr (Side) {
    for (; q + kWideLanes <= count; q += kWideLanes)
      for (int64_t first = 0; first < target.present; first += kWideLanes) {
        Wide square[kWideLanes];
        for (int64_t k = 0; k < kWideLanes; ++k) square[k] = load(source + row(q + k) * kSide + first);
        transpose_from<1>(square);
        for (int64_t w = 0; w < kWideLanes && first + w < target.present; ++w)
          store_wide(target.first + (first + w) * target.stride + q, square[w]);
      }
    for (; q < count; ++q)
      for (int64_t w = 0; w < target.present; ++w)
        target.first[w * target.stride + q] = static_cast<T>(source[row(q) * kSide + w]);
  } else {
    for (; q < count; ++q) target.first[q] = static_cast<T>(source[row(q)]);
  }
}

// A block of steps for the top level of one sequence, in the precision of its input.
template <class T>
struct Block {
  int64_t steps, dim, size;  // `size` numbers in a factor
  const T* x;                // [steps, dim]
  const T* h;                // [steps, size]
};

// Adds products of J letters and U vectors of the factors, summed over the block in T.
template <class T, int J, int U>
inline void add_block_tile(const Block<T>& block, int64_t j, int64_t q, double* top) {
  constexpr int64_t lanes = Vectors<T>::lanes;
  Vector<T> sum[J][U] = {};
  for (int64_t k = 0; k < block.steps; ++k) {
    Vector<T> factor[U];
    for (int v = 0; v < U; ++v) factor[v] = load(block.h + k * block.size + q + v * lanes);
    for (int u = 0; u < J; ++u) {
      const Vector<T> letter = fill(block.x[k * block.dim + j + u]);
      for (int v = 0; v < U; ++v) sum[u][v] += factor[v] * letter;
    }
  }
  for (int u = 0; u < J; ++u)
    for (int v = 0; v < U; ++v) {
      T part[lanes];
      store(part, sum[u][v]);
      double* target = top + (j + u) * block.size + q + v * lanes;
      for (int64_t i = 0; i < lanes; i += kWideLanes) store(target + i, load(target + i) + load_wide(part + i));
    }
}

template <class T, int U>
inline void add_block_column(const Block<T>& block, int64_t q, double* top) {
  int64_t j = 0;
  for (; j + 4 <= block.dim; j += 4) add_block_tile<T, 4, U>(block, j, q, top);
  for (; j < block.dim; ++j) add_block_tile<T, 1, U>(block, j, q, top);
}

// top += sum of h_k ⊗ x_k. BLAS takes longer for so few steps.
template <class T>
void add_block(const Block<T>& block, double* top) {
  constexpr int64_t lanes = Vectors<T>::lanes;
  constexpr int U = kWideLanes >= 8 ? 4 : 2;
  int64_t q = 0;
  for (; q + U * lanes <= block.size; q += U * lanes) add_block_column<T, U>(block, q, top);
  for (; q + lanes <= block.size; q += lanes) add_block_column<T, 1>(block, q, top);
  for (; q < block.size; ++q)
    for (int64_t j = 0; j < block.dim; ++j) {
      T sum = 0;
      for (int64_t k = 0; k < block.steps; ++k) sum += block.h[k * block.size + q] * block.x[k * block.dim + j];
      top[j * block.size + q] += sum;
    }
}

struct Identity {
  int64_t operator()(int64_t q) const { return q; }
};

// A call, its levels, and the order of words in its results.
struct Map {
  const seq2tens_full_map& call;
  Levels levels;
  const int64_t* words;  // [lower] place of every word below the top level, within its level
  int64_t length;        // steps
  int64_t blocks;
  int64_t groups;
  int64_t tasks;

  Map(const seq2tens_full_map& call, Frame& frame) : call(call) {
    const int64_t d = call.dim;
    int64_t* start = frame.take<int64_t>(call.order + 2);
    start[0] = 0;
    for (int64_t m = 0, count = 1; m <= call.order; ++m, count *= d) start[m + 1] = start[m] + count;
    levels = {d, call.order, start};
    int64_t* words = frame.take<int64_t>(levels.lower());
    words[0] = 0;
    for (int64_t m = 1; m < call.order; ++m)
      for (int64_t a = 0, n = levels.count(m - 1); a < d; ++a)
        for (int64_t i = 0; i < n; ++i) words[start[m] + a * n + i] = d * words[start[m - 1] + i] + a;
    this->words = words;
    length = std::max<int64_t>(0, call.points - call.increments);
    blocks = (length + call.block - 1) / call.block;
    groups = (call.batch + call.lanes - 1) / call.lanes;
    constexpr int64_t kWorthATask = worth_a_task(200000);  // multiplications, some 40 µs
    const int64_t top = levels.count(call.order);
    const int64_t worth = call.batch * length * (top + 4 * levels.lower()) / kWorthATask;
    tasks = std::max<int64_t>(1, std::min({groups, worth, int64_t{16}}));
  }

  // Calls each(first, count, row) for pieces of the coordinates of a result: row(q) is the place of number first + q.
  template <class Each>
  void for_each_piece(const Each& each) const {
    each(int64_t{0}, int64_t{1}, [](int64_t q) { return q; });
    for (int64_t m = 1; m <= levels.order; ++m) {
      const int64_t n = levels.count(m - 1), d = levels.dim;
      const int64_t* tails = words + levels.start[m - 1];
      for (int64_t a = 0, first = levels.start[m]; a < d; ++a)
        each(first + a * n, n, [=](int64_t q) { return first + d * tails[q] + a; });
    }
  }
};

// The memory for a group of sequences, and what both passes do with it.
template <class T, bool Side>
struct Work {
  static constexpr int64_t columns = Side ? kSide : 1;
  const Map& map;
  const seq2tens_full_map& call;
  Frame frame;
  int64_t dim, lower, factor, step_size;  // numbers in a step, below the top level, and in a factor of the top level
  double* state;                          // [size] or, in the backward pass, the derivatives by it
  double* chain;                          // [lower]
  double* rows;                           // [block + 1, step size] steps
  double* factors;                        // [block, factor] what the top level adds, times the step
  T *narrow_rows, *narrow_factors; // for products of T, where that is not double

  Work(const Map& map)
      : map(map),
        call(map.call),
        dim(call.dim),
        lower(map.levels.lower() * columns),
        factor(map.levels.count(call.order - 1) * columns),
        step_size(dim * columns) {
    state = frame.template take<double>(map.levels.size() * columns);
    chain = frame.template take<double>(lower);
    rows = frame.template take<double>((call.block + 1) * step_size);
    factors = frame.template take<double>(call.sequences ? 0 : call.block * factor);
    const bool narrow = call.products && !std::is_same<T, double>::value;
    narrow_rows = frame.template take<T>(narrow ? call.block * step_size : 0);
    narrow_factors = frame.template take<T>(narrow ? call.block * factor : 0);
  }

  double* top() const { return state + lower; }
  int64_t steps(int64_t block) const { return std::min(call.block, map.length - block * call.block); }
  double* kept(int64_t group, int64_t block) const { return call.kept + (group * map.blocks + block) * lower; }
  int64_t present(int64_t group) const { return std::min(call.lanes, call.batch - group * call.lanes); }
  template <class N>
  Columns<N> sequences(N* array, int64_t group, int64_t size) const {
    return {array + group * call.lanes * size, size, present(group)};
  }
  Columns<const T> points(int64_t group) const {
    return sequences(static_cast<const T*>(call.x), group, call.points * dim);
  }

  void read_steps(int64_t group, int64_t block) {
    const int64_t count = steps(block), first = block * call.block;
    Columns<const T> source = points(group);
    source.first += first * dim;
    read_columns<Side>(source, (count + call.increments) * dim, rows, Identity());
    if (call.increments) combine(1.0, rows + step_size, -1.0, rows, rows, count * step_size);
  }
  Products<double> products(int64_t block) const { return {steps(block), dim, rows, step_size, factors, factor, factor}; }

  // What the top level adds at step i, but for the step itself; `s` is the state before it.
  void find_top_factor(const Step<Side>& step, const double* s, int64_t i) const {
    const double* x = rows + i * step_size;
    if constexpr (!Side)
      if (call.products) return step.find_factor(call.order, s, x, top_factors() + i * factor);
    step.find_factor(call.order, s, x, factors + i * factor);
  }
  // Where factors go that are multiplied in T.
  T* top_factors() const {
    if constexpr (std::is_same<T, double>::value)
      return factors;
    else
      return narrow_factors;
  }
  // The same numbers as T.
  T* narrowed(double* numbers, int64_t count, T* room) const {
    if constexpr (std::is_same<T, double>::value) {
      return numbers;
    } else {
      std::copy(numbers, numbers + count, room);
      return room;
    }
  }
};

template <class T, bool Side>
struct Forward : Work<T, Side> {
  typedef Work<T, Side> Base;
  using Base::call, Base::map, Base::state, Base::rows, Base::factors, Base::factor, Base::dim, Base::step_size;
  Lift lift;
  Step<Side> step;

  explicit Forward(const Map& map)
      : Base(map), lift{call.lift_order, call.coefficients, nullptr}, step{map.levels, lift, Base::chain, nullptr} {}

  void run(int64_t group) {
    std::fill(state, state + Base::columns, 1.0);
    std::fill(state + Base::columns, state + map.levels.size() * Base::columns, 0.0);
    for (int64_t block = 0; block < map.blocks; ++block) {
      if (call.kept) std::copy(state, state + Base::lower, Base::kept(group, block));
      Base::read_steps(group, block);
      if (call.sequences)
        advance_all(group, block);
      else
        advance_block(block);
    }
    if (!call.sequences) write_state(group, 0, 1);
  }

 private:
  void write_state(int64_t group, int64_t row, int64_t count) const {
    const int64_t size = map.levels.size();
    const auto out = this->sequences(static_cast<T*>(call.out), group, count * size);
    map.for_each_piece([&](int64_t first, int64_t n, auto place) {
      write_columns<Side, T>(state, {out.first + row * size + first, out.stride, out.present}, n, place);
    });
  }
  void advance_all(int64_t group, int64_t block) {
    for (int64_t i = 0; i < Base::steps(block); ++i) {
      step.advance(state, state, rows + i * step_size, call.order);
      write_state(group, block * call.block + i, map.length);
    }
  }
  void advance_block(int64_t block) {
    const int64_t steps = Base::steps(block);
    for (int64_t i = 0; i < steps; ++i) {
      const double* x = rows + i * step_size;
      Base::find_top_factor(step, state, i);
      step.advance(state, state, x, call.order - 1);
    }
    if (call.products)
      add_narrow(steps);
    else
      add_products<Side>(Base::products(block), Base::top(), Base::top());
  }
  void add_narrow(int64_t steps) {
    const T* x = this->narrowed(rows, steps * dim, Base::narrow_rows);
    add_block<T>({steps, dim, factor, x, Base::top_factors()}, Base::top());
  }
};

template <class T, bool Side>
struct Backward : Work<T, Side> {
  typedef Work<T, Side> Base;
  using Base::call, Base::map, Base::rows, Base::factors, Base::factor, Base::dim, Base::step_size, Base::lower;
  const seq2tens_full_map_gradients& given;
  double* g;         // [size] derivatives by the state
  double* drows;     // [block + 1, step size]; the last row is the first one of the block after
  double* path;      // [block, lower] states before every step
  double* dfactors;  // [block, factor]
  T *narrow_top, *narrow_dfactors, *narrow_drows;
  Lift lift;
  Step<Side> step;

  Backward(const Map& map, const seq2tens_full_map_gradients& given)
      : Base(map),
        given(given),
        g(Base::state),
        drows(this->frame.template take<double>((call.block + 1) * step_size)),
        path(this->frame.template take<double>(call.block * lower)),
        dfactors(this->frame.template take<double>(call.sequences ? 0 : call.block * factor)),
        narrow_top(this->frame.template take<T>(call.products ? dim * factor : 0)),
        narrow_dfactors(this->frame.template take<T>(call.products ? call.block * factor : 0)),
        narrow_drows(this->frame.template take<T>(call.products ? call.block * dim : 0)),
        lift{call.lift_order, call.coefficients, nullptr},
        step{map.levels, lift, Base::chain, this->frame.template take<double>(lower)} {}

  void run(int64_t group, double* dcoefficients) {
    lift.gradients = dcoefficients;
    std::fill(drows, drows + (call.block + 1) * step_size, 0.0);
    if (call.sequences)
      std::fill(g, g + map.levels.size(), 0.0);
    else
      read_gradients(group);
    for (int64_t block = map.blocks - 1; block >= 0; --block) {
      const int64_t steps = Base::steps(block);
      Base::read_steps(group, block);
      rerun(group, block);
      std::fill(drows, drows + call.block * step_size, 0.0);
      if (!call.sequences) contract_top(steps);
      for (int64_t i = steps - 1; i >= 0; --i) {
        if (call.sequences) add_gradients(group, block * call.block + i);
        retreat(i);
      }
      write_steps(group, block);
    }
    const auto dx = this->sequences(static_cast<T*>(given.x), group, call.points * dim);
    for (int64_t w = 0; map.length == 0 && w < dx.present; ++w)
      std::fill(dx.first + w * dx.stride, dx.first + (w + 1) * dx.stride, T(0));
  }

 private:
  void read_gradients(int64_t group) {
    const auto dout = this->sequences(static_cast<const T*>(given.out), group, map.levels.size());
    map.for_each_piece([&](int64_t first, int64_t n, auto place) {
      read_columns<Side, T>({dout.first + first, dout.stride, dout.present}, n, g, place);
    });
    if (call.products) this->narrowed(Base::top(), dim * factor, narrow_top);
  }
  // Derivatives by the state after one step of one sequence.
  void add_gradients(int64_t group, int64_t row) {
    const T* dout = static_cast<const T*>(given.out) + (group * map.length + row) * map.levels.size();
    map.for_each_piece([&](int64_t first, int64_t n, auto place) {
      for (int64_t q = 0; q < n; ++q) g[place(q)] += dout[first + q];
    });
  }
  void rerun(int64_t group, int64_t block) {
    const double* kept = Base::kept(group, block);
    std::copy(kept, kept + lower, path);
    for (int64_t i = 0; i + 1 < Base::steps(block); ++i) {
      double *before = path + i * lower, *after = before + lower;
      std::copy(before, before + Base::columns, after);
      step.advance(before, after, rows + i * step_size, call.order - 1);
    }
  }
  // Through the top level, of which the derivatives are the same at every step.
  void contract_top(int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) Base::find_top_factor(step, path + i * lower, i);
    if (call.products) return contract_narrow(steps);
    const Products<double> p{steps, dim, rows, step_size, factors, factor, factor};
    contract_products<Side>(p, Base::top(), dfactors, drows);
  }
  void contract_narrow(int64_t steps) {
    constexpr bool direct = std::is_same<T, double>::value;
    const T* top = direct ? this->narrowed(Base::top(), 0, narrow_top) : narrow_top;
    const T* x = this->narrowed(rows, steps * dim, Base::narrow_rows);
    const T* h = Base::top_factors();
    T* dh = this->narrowed(dfactors, 0, narrow_dfactors);
    T* dx = this->narrowed(drows, 0, narrow_drows);
    if (!direct) std::fill(dx, dx + steps * dim, T(0));
    const Products<T> p{steps, dim, x, dim, h, factor, factor};
    contract_products<false>(p, top, dh, dx);
    if (direct) return;
    std::copy(dh, dh + steps * factor, dfactors);
    std::copy(dx, dx + steps * dim, drows);
  }
  void retreat(int64_t i) {
    const double *s = path + i * lower, *x = rows + i * step_size;
    double* dx = drows + i * step_size;
    if (call.sequences) return step.retreat(g, s, x, dx, call.order);
    step.retreat(g, s, x, dx, call.order - 1);
    step.find_brackets(call.order, s, x);
    step.unwind(call.order, s, x, dfactors + i * factor, g, dx);
  }
  void write_steps(int64_t group, int64_t block) {
    const int64_t steps = Base::steps(block);
    auto dx = this->sequences(static_cast<T*>(given.x), group, call.points * dim);
    if (call.increments) {
      double* first = rows;  // the steps are not needed any more
      combine(-1.0, drows, 0.0, drows, first, step_size);
      if (block == 0) write_columns<Side, T>(first, dx, dim, Identity());
      combine(1.0, drows, -1.0, drows + step_size, drows, steps * step_size);
      combine(-1.0, first, 0.0, first, drows + call.block * step_size, step_size);
      dx.first += dim;
    }
    dx.first += block * call.block * dim;
    write_columns<Side, T>(drows, dx, steps * dim, Identity());
  }
};

template <class T, bool Side>
void forward_groups(const Map& map) {
  for_each_task(map.tasks, map.call.threads, [&](int64_t task) {
    Forward<T, Side> forward(map);
    const Range groups(map.groups, task, map.tasks);
    for (int64_t group = groups.begin; group < groups.end; ++group) forward.run(group);
  });
}

// Derivatives by the coefficients are summed for each group, then over groups in their order.
template <class T, bool Side>
void backward_groups(const Map& map, const seq2tens_full_map_gradients& given, Frame& frame) {
  const int64_t p = map.call.lift_order;
  double* sums = given.coefficients ? frame.take_zeros<double>(map.groups * p) : nullptr;
  for_each_task(map.tasks, map.call.threads, [&](int64_t task) {
    Backward<T, Side> backward(map, given);
    const Range groups(map.groups, task, map.tasks);
    for (int64_t group = groups.begin; group < groups.end; ++group)
      backward.run(group, sums ? sums + group * p : nullptr);
  });
  for (int64_t j = 0; sums && j < p; ++j) {
    given.coefficients[j] = 0;
    for (int64_t group = 0; group < map.groups; ++group) given.coefficients[j] += sums[group * p + j];
  }
}

template <class T>
void forward(const seq2tens_full_map& call) {
  Frame frame;
  const Map map(call, frame);
  call.lanes > 1 ? forward_groups<T, true>(map) : forward_groups<T, false>(map);
}

template <class T>
void backward(const seq2tens_full_map_gradients& given) {
  Frame frame;
  const Map map(*given.call, frame);
  given.call->lanes > 1 ? backward_groups<T, true>(map, given, frame) : backward_groups<T, false>(map, given, frame);
}

}  // namespace
}  // namespace full_map_detail

void full_map_forward(const seq2tens_full_map& call) {
  call.is_double ? full_map_detail::forward<double>(call) : full_map_detail::forward<float>(call);
}

void full_map_backward(const seq2tens_full_map_gradients& given) {
  given.call->is_double ? full_map_detail::backward<double>(given) : full_map_detail::backward<float>(given);
}

}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
