// The full map over whole sequences. States are doubles for any T. The top level is a sum over time of products h ⊗ x,
// taken for a block of steps at once if only the last state is needed, and step by step if all states are. For every
// block, the backward pass repeats the steps from a state that the forward pass saved, then walks back. It never needs
// the top level.
//
// A task is a range of groups of sequences. How a call is divided only depends on shapes.
#include "full_map_steps.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {
namespace full_map_detail {
namespace {

struct Identity {
  int64_t operator[](int64_t q) const { return q; }
};

// The scratch memory for a group of sequences, and what both passes share. Products of the top level have type N.
template <class T, bool Side>
struct Work {
  typedef std::conditional_t<Side, double, T> N;
  static constexpr int64_t columns = Side ? kSide : 1;
  const Map& map;
  const seq2tens_full_map& call;
  Frame frame;
  int64_t dim, lower, factor, step_size;  // numbers below the top level, in a factor of the top level, and in a step
  int64_t together;                       // steps whose products are summed at once
  double* state;                          // [size] the state; in the backward pass, its gradient
  double* rows;                           // [block + 1, step size] steps
  N* room;                                // [block, step size] memory for the steps as N
  const N* top_rows;                      // the steps as N
  N* factors;                             // [block, factor] each times its step is added to the top level
  Lift lift;
  Step<Side> step;

  explicit Work(const Map& map)
      : map(map),
        call(map.call),
        dim(call.dim),
        lower(map.levels.lower() * columns),
        factor(map.levels.count(call.order - 1) * columns),
        step_size(dim * columns),
        together(call.sequences ? 1 : call.block),
        state(frame.take<double>(map.levels.size() * columns)),
        rows(frame.take<double>((call.block + 1) * step_size)),
        room(room_as_needed(call.block * step_size)),
        factors(frame.take<N>(call.block * factor)),
        lift{call.lift_order, call.coefficients, nullptr},
        step{map.levels, lift, frame.take<double>(lower), frame.take<double>(lower)} {}

  double* top() const { return state + lower; }
  int64_t steps(int64_t block) const { return std::min(call.block, map.length - block * call.block); }
  double* checkpoints(int64_t group, int64_t block) const { return call.checkpoints + (group * map.blocks + block) * lower; }

  // Memory for numbers as N, unless N is double.
  N* room_as_needed(int64_t count) { return frame.take<N>(std::is_same<N, double>::value ? 0 : count); }
  static const N* convert(const double* numbers, int64_t count, N* room) {
    if constexpr (std::is_same<N, double>::value) {
      return numbers;
    } else {
      std::copy(numbers, numbers + count, room);
      return room;
    }
  }

  // The sequences of a group in an array with `size` numbers for each. In a group of eight, missing sequences are 0.
  template <class A>
  struct Sequences {
    A* first;
    int64_t size, present;
  };
  template <class A>
  Sequences<A> sequences(A* array, int64_t group, int64_t size) const {
    return {array + group * call.lanes * size, size, std::min(call.lanes, call.batch - group * call.lanes)};
  }
  // Copies number q of every sequence, counted from `offset`, to target[place[q]].
  template <class Places>
  void read(Sequences<const T> source, int64_t offset, int64_t count, double* target, Places place) const {
    int64_t done = 0;
    for (; Side && done + kWideLanes <= count; done += kWideLanes)
      for (int64_t first = 0; first < kSide; first += kWideLanes) {
        Wide square[kWideLanes] = {};
        for (int64_t w = 0; w < kWideLanes && first + w < source.present; ++w)
          square[w] = load_wide(source.first + (first + w) * source.size + offset + done);
        transpose(square);
        for (int64_t k = 0; k < kWideLanes; ++k) store(target + place[done + k] * kSide + first, square[k]);
      }
    for (int64_t w = 0; w < columns; ++w) {
      const T* numbers = source.first + w * source.size + offset;
      for (int64_t q = done; q < count; ++q) target[place[q] * columns + w] = w < source.present ? numbers[q] : T(0);
    }
  }
  // Copies source[place[q]] to number q of every sequence.
  template <class Places>
  void write(const double* source, Sequences<T> target, int64_t offset, int64_t count, Places place) const {
    int64_t done = 0;
    for (; Side && done + kWideLanes <= count; done += kWideLanes)
      for (int64_t first = 0; first < target.present; first += kWideLanes) {
        Wide square[kWideLanes];
        for (int64_t k = 0; k < kWideLanes; ++k) square[k] = load(source + place[done + k] * kSide + first);
        transpose(square);
        for (int64_t w = 0; w < kWideLanes && first + w < target.present; ++w)
          store_wide(target.first + (first + w) * target.size + offset + done, square[w]);
      }
    for (int64_t w = 0; w < target.present; ++w) {
      T* numbers = target.first + w * target.size + offset;
      for (int64_t q = done; q < count; ++q) numbers[q] = static_cast<T>(source[place[q] * columns + w]);
    }
  }

  void read_steps(int64_t group, int64_t block) {
    const int64_t count = steps(block);
    read(sequences(static_cast<const T*>(call.x), group, call.points * dim), block * call.block * dim,
         (count + call.increments) * dim, rows, Identity());
    if (call.increments) combine(1.0, rows + step_size, -1.0, rows, rows, count * step_size);
    top_rows = convert(rows, count * step_size, room);
  }
  // The products that some steps add to the top level.
  Products<N> products(int64_t first, int64_t count) const {
    return Products<N>{first + count, dim, top_rows, step_size, factors, factor, factor}.from(first);
  }
};

template <class T, bool Side>
struct Forward : Work<T, Side> {
  typedef Work<T, Side> Base;
  using Base::call, Base::map, Base::state, Base::step, Base::step_size;
  using Base::Work;

  void run(int64_t group) {
    std::fill(state, state + Base::columns, 1.0);
    std::fill(state + Base::columns, state + map.levels.size() * Base::columns, 0.0);
    for (int64_t block = 0; block < map.blocks; ++block) {
      if (call.checkpoints) std::copy(state, state + Base::lower, Base::checkpoints(group, block));
      Base::read_steps(group, block);
      for (int64_t i = 0; i < Base::steps(block); i += Base::together) {
        advance(i, std::min(Base::together, Base::steps(block) - i));
        if (call.sequences) write_state(group, block * call.block + i, map.length);
      }
    }
    if (!call.sequences) write_state(group, 0, 1);
  }

 private:
  void advance(int64_t first, int64_t count) {
    for (int64_t i = first; i < first + count; ++i) {
      const double* x = Base::rows + i * step_size;
      step.find_factor(call.order, state, x, Base::factors + i * Base::factor);
      step.advance(state, state, x, call.order - 1);
    }
    add_products<Side>(Base::products(first, count), Base::top());
  }
  void write_state(int64_t group, int64_t row, int64_t rows) const {
    const int64_t size = map.levels.size();
    this->write(state, this->sequences(static_cast<T*>(call.out), group, rows * size), row * size, size, map.places);
  }
};

template <class T, bool Side>
struct Backward : Work<T, Side> {
  typedef Work<T, Side> Base;
  using typename Base::N;
  using Base::call, Base::map, Base::step, Base::step_size, Base::lower, Base::factor, Base::rows, Base::dim;
  const seq2tens_full_map_gradients& given;
  double* g;         // [size] gradient of the state
  double* drows;     // [block + 1, step size]; the last row is the first one of the next block
  double* path;      // [block, lower] states before every step
  double* dfactors;  // [block, factor]
  N* top_room;       // [dim, factor] memory for the top level of g as N
  const N* top_g;    // the top level of g as N

  Backward(const Map& map, const seq2tens_full_map_gradients& given)
      : Base(map),
        given(given),
        g(Base::state),
        drows(this->frame.template take<double>((call.block + 1) * step_size)),
        path(this->frame.template take<double>(call.block * lower)),
        dfactors(this->frame.template take<double>(call.block * factor)),
        top_room(Base::room_as_needed(dim * factor)) {}

  void run(int64_t group, double* dcoefficients) {
    Base::lift.gradients = dcoefficients;
    std::fill(drows, drows + (call.block + 1) * step_size, 0.0);
    call.sequences ? std::fill(g, g + map.levels.size(), 0.0) : read_gradients(group);
    for (int64_t block = map.blocks - 1; block >= 0; --block) {
      const int64_t steps = Base::steps(block);
      Base::read_steps(group, block);
      rerun(group, block);
      std::fill(drows, drows + call.block * step_size, 0.0);
      for (int64_t i = (steps - 1) / Base::together * Base::together; i >= 0; i -= Base::together) {
        if (call.sequences) add_gradients(group, block * call.block + i);
        retreat(i, std::min(Base::together, steps - i));
      }
      write_steps(group, block);
    }
  }

 private:
  void read_gradients(int64_t group) {
    const int64_t size = map.levels.size();
    this->read(this->sequences(static_cast<const T*>(given.out), group, size), 0, size, g, map.places);
    top_g = Base::convert(Base::top(), dim * factor, top_room);
  }
  // Adds the gradient of the state after one step of one sequence.
  void add_gradients(int64_t group, int64_t row) {
    const int64_t size = map.levels.size();
    const T* dout = static_cast<const T*>(given.out) + (group * map.length + row) * size;
    for (int64_t q = 0; q < size; ++q) g[map.places[q]] += dout[q];
    top_g = Base::convert(Base::top(), dim * factor, top_room);
  }
  // Recomputes the states before every step of a block, and the factors of the top level.
  void rerun(int64_t group, int64_t block) {
    const double* checkpoints = Base::checkpoints(group, block);
    std::copy(checkpoints, checkpoints + lower, path);
    for (int64_t i = 0; i < Base::steps(block); ++i) {
      double *before = path + i * lower, *after = before + lower;
      const double* x = rows + i * step_size;
      step.find_factor(call.order, before, x, Base::factors + i * factor);
      if (i + 1 == Base::steps(block)) break;
      std::copy(before, before + Base::columns, after);
      step.advance(before, after, x, call.order - 1);
    }
  }
  // Goes back through some steps. The gradient of the top level is the same at all of them.
  void retreat(int64_t first, int64_t count) {
    contract_products<Side>(Base::products(first, count), top_g, dfactors + first * factor, drows + first * step_size);
    for (int64_t i = first + count - 1; i >= first; --i) {
      const double *s = path + i * lower, *x = rows + i * step_size;
      double* dx = drows + i * step_size;
      step.retreat(g, s, x, dx, call.order - 1);
      step.find_brackets(call.order, s, x);
      step.unwind(call.order, s, x, dfactors + i * factor, g, dx);
    }
  }
  void write_steps(int64_t group, int64_t block) {
    const int64_t steps = Base::steps(block), offset = block * call.block * dim;
    const auto dx = this->sequences(static_cast<T*>(given.x), group, call.points * dim);
    if (call.increments) {
      double* first = rows;  // the steps are no longer needed
      combine(-1.0, drows, 0.0, drows, first, step_size);
      if (block == 0) this->write(first, dx, 0, dim, Identity());
      combine(1.0, drows, -1.0, drows + step_size, drows, steps * step_size);
      combine(-1.0, first, 0.0, first, drows + call.block * step_size, step_size);
    }
    this->write(drows, dx, offset + call.increments * dim, steps * dim, Identity());
  }
};

template <class T, bool Side>
void forward_groups(const Map& map) {
  for_each_task(map.tasks, map.threads, [&](int64_t task) {
    Forward<T, Side> forward(map);
    const Range groups(map.groups, task, map.tasks);
    for (int64_t group = groups.begin; group < groups.end; ++group) forward.run(group);
  });
}

// Gradients of the coefficients are summed within each group, then over groups in their order.
template <class T, bool Side>
void backward_groups(const Map& map, const seq2tens_full_map_gradients& given, Frame& frame) {
  const int64_t p = map.call.lift_order;
  double* sums = given.coefficients ? frame.take_zeros<double>(map.groups * p) : nullptr;
  for_each_task(map.tasks, map.threads, [&](int64_t task) {
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
  T* dx = static_cast<T*>(given.x);
  if (map.length == 0) std::fill(dx, dx + map.call.batch * map.call.points * map.call.dim, T(0));
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
