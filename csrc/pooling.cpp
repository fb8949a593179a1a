// Pools of blocks of convolutions and functionals, by tiles of steps that stay in the L1 cache: nothing along time is
// written to memory.
//
// Convolutions and recursions are computed in doubles and rounded once, so that another order of the same operations
// gives the same pools. Pools of a tile are summed in floats, then added to sums in doubles. A task is a block and a
// range of sequences. Sequences do not share a sum, so results do not depend on how a call is divided.
#include <limits>

#include "parallel.h"

namespace seq2tens {
namespace SEQ2TENS_ISA {
namespace pooling_detail {
namespace {

using Values = Vector<float>;
typedef int32_t Places __attribute__((vector_size(kVectorBytes)));
constexpr int64_t kWidth = 32, kLanes = Vectors<float>::lanes, kPools = 5;
constexpr int kVectors = kWidth / kLanes;
// Rows and vectors of convolutions whose sums stay in registers.
constexpr int kRows = 6, kColumns = kVectorBytes == 64 ? 4 : 2;
constexpr int64_t kPanel = kColumns * kWideLanes;
constexpr int64_t kTile = 6 * kRows;

// The larger or smaller of two numbers; NaN if the second one is.
inline Values larger(Values a, Values b) { return a > b ? a : b; }
inline Values smaller(Values a, Values b) { return a < b ? a : b; }

inline Values ramp_of(Values value, Values threshold, Values steepness) {
  const Values ramp = (value - threshold) * steepness + fill(0.5f);
  return smaller(fill(1.0f), larger(Values{}, ramp));
}

// Numbers of a row at any places.
inline Values pick(const float* row, const int32_t* places) {
  Values values;
#if !defined(__clang__)
  if constexpr (kVectors == 2)
    return __builtin_shuffle(load(row), load(row + kLanes), *reinterpret_cast<const Places*>(places));
#endif
  for (int64_t k = 0; k < kLanes; ++k) values[k] = row[places[k]];
  return values;
}

// The parameters of a block, in the order and the precision in which they are read.
struct Block {
  const seq2tens_pooled_blocks& call;
  int64_t index, dilation, reach;
  const int64_t* channel;
  const float *gains, *threshold;
  double* weight;   // [panels, taps, chosen, kPanel]
  double* powers;   // [order + 1, kWidth] of the decay
  int32_t* places;  // [order, kWidth]

  Block(const seq2tens_pooled_blocks& call, int64_t index, Frame& frame)
      : call(call), index(index), dilation(call.dilation[index]), reach(dilation * (call.taps - 1)),
        channel(call.channel + index * call.chosen), gains(call.gains + index * call.order * kWidth),
        threshold(call.threshold + index * kWidth) {
    const int64_t inner = call.taps * call.chosen;
    weight = frame.take<double>(inner * kWidth);
    const float* row = call.weight + index * inner * kWidth;
    for (int64_t i = 0; i < inner; ++i, row += kWidth)
      for (int64_t q = 0; q < kWidth; q += kPanel) std::copy(row + q, row + q + kPanel, weight + q * inner + i * kPanel);
    powers = frame.take<double>((call.order + 1) * kWidth);
    std::fill(powers, powers + kWidth, 1.0);
    for (int64_t i = 0; i < call.order * kWidth; ++i)
      powers[i + kWidth] = powers[i] * double(call.decay[index * kWidth + i % kWidth]);
    places = frame.take<int32_t>(call.order * kWidth);
    const int64_t* picks = call.picks + index * call.order * kWidth;
    std::copy(picks, picks + call.order * kWidth, places);
  }

  // The channels of a sequence that the block reads, with zeros around them.
  int64_t room() const { return (call.length + kRows + reach) * call.chosen; }
  void read(int64_t sequence, int64_t steps, double* x) const {
    const float* row = call.paths + (call.source[index] * call.batch + sequence) * call.length * call.channels;
    const int64_t before = reach - reach / 2, after = reach / 2 + kRows;
    x = std::fill_n(x, before * call.chosen, 0.0);
    for (int64_t t = 0; t < steps; ++t, row += call.channels)
      for (int64_t c = 0; c < call.chosen; ++c) *x++ = row[channel[c]];
    std::fill_n(x, after * call.chosen, 0.0);
  }
};

// The numbers of a tile, a row for each step.
struct PathTile {
  int64_t steps;
  float* responses;  // of the convolutions
  float* path;       // of one level
  double* faded;     // the level before the step, after the decay of a step
};

// Convolves at the steps of a tile, of which `x` is where the first one begins to read, and at a few more.
void convolve(const Block& block, const double* x, const PathTile& tile) {
  const int64_t n = block.call.chosen, inner = block.call.taps * n, jump = block.dilation * n;
  for (int64_t q = 0; q < kWidth; q += kPanel)
    for (int64_t i = 0; i < tile.steps; i += kRows) {
      Wide sum[kRows][kColumns] = {};
      const double* weight = block.weight + q * inner;
      for (int64_t j = 0; j < block.call.taps; ++j)
        for (int64_t c = 0; c < n; ++c, weight += kPanel) {
          const double* value = x + i * n + j * jump + c;
          for (int r = 0; r < kRows; ++r)
            for (int v = 0; v < kColumns; ++v) sum[r][v] += value[r * n] * load(weight + v * kWideLanes);
        }
      for (int r = 0; r < kRows; ++r)
        for (int v = 0; v < kColumns; ++v)
          store_wide(tile.responses + (i + r) * kWidth + q + v * kWideLanes, sum[r][v]);
    }
}

inline void add_to(double* total, Values part) {
  for (int64_t k = 0; k < kLanes; ++k) total[k] += static_cast<double>(part[k]);
}

// Pools of a sequence: sums so far, and the states of what they count.
struct Pools {
  double *share, *changes, *wins, *losses;  // [kWidth]
  double *level_share, *energy;             // [order, kWidth]
  double* state;                            // [order, kWidth] of the recursion
  float *run, *longest, *before;            // [kWidth]

  Pools(int64_t order, Frame& frame) {
    double* sums = frame.take_zeros<double>((4 + 3 * order) * kWidth);
    for (double** sum : {&share, &changes, &wins, &losses}) *sum = sums, sums += kWidth;
    for (double** sum : {&level_share, &energy, &state}) *sum = sums, sums += order * kWidth;
    float* floats = frame.take_zeros<float>(3 * kWidth);
    run = floats, longest = floats + kWidth, before = floats + 2 * kWidth;
  }

  // Share, stretch and changes of two vectors of convolutions from column q on.
  void add_ramps(const Block& block, const PathTile& tile, int64_t q, bool first) {
    constexpr int U = 2;
    const Values steepness = fill(static_cast<float>(block.call.steepness));
    Values threshold[U], share_sum[U] = {}, changes_sum[U] = {}, running[U], longest_run[U], last[U];
    for (int u = 0; u < U; ++u) {
      const int64_t k = q + u * kLanes;
      threshold[u] = load(block.threshold + k);
      running[u] = load(run + k), longest_run[u] = load(longest + k);
      last[u] = first ? ramp_of(load(tile.responses + k), threshold[u], steepness) : load(before + k);
    }
    for (int64_t t = 0; t < tile.steps; ++t)
      for (int u = 0; u < U; ++u) {
        const Values ramp = ramp_of(load(tile.responses + t * kWidth + q + u * kLanes), threshold[u], steepness);
        share_sum[u] += ramp;
        changes_sum[u] += larger(ramp - last[u], last[u] - ramp);
        last[u] = ramp;
        running[u] = (running[u] + fill(1.0f)) * ramp;
        longest_run[u] = larger(longest_run[u], running[u]);
      }
    for (int u = 0; u < U; ++u) {
      const int64_t k = q + u * kLanes;
      add_to(share + k, share_sum[u]), add_to(changes + k, changes_sum[u]);
      store(run + k, running[u]), store(longest + k, longest_run[u]), store(before + k, last[u]);
    }
  }

  void add_contest(const Block& block, const PathTile& tile);
  void add_level(const Block& block, const PathTile& tile, int64_t level);
  void write(const seq2tens_pooled_blocks& call, int64_t steps, float* out) const;
};

template <int Shift, int64_t... Lane>
inline Values rotate(Values v, std::integer_sequence<int64_t, Lane...>) {
  return Values{v[(Lane + Shift) % kLanes]...};
}

// Gives every lane the extreme, by `choose`, of all lanes of its group.
template <int Shift = kLanes / 2, class Choose>
inline Values extreme_of_groups(Values v, int64_t groups, const Choose& choose) {
  if constexpr (Shift > 0) {
    if (Shift < groups) return v;
    v = choose(v, rotate<Shift>(v, std::make_integer_sequence<int64_t, kLanes>()));
    return extreme_of_groups<Shift / 2>(v, groups, choose);
  }
  return v;
}

void Pools::add_contest(const Block& block, const PathTile& tile) {
  const Values steepness = fill(static_cast<float>(block.call.contest_steepness)), one = fill(1.0f), zero = {};
  Values won[kVectors] = {}, lost[kVectors] = {};
  for (int64_t t = 0; t < tile.steps; ++t) {
    Values value[kVectors], top = load(tile.responses + t * kWidth), bottom = top;
    for (int u = 0; u < kVectors; ++u) {
      value[u] = load(tile.responses + t * kWidth + u * kLanes);
      top = larger(top, value[u]);
      bottom = smaller(bottom, value[u]);
    }
    top = extreme_of_groups(top, block.call.groups, larger);
    bottom = extreme_of_groups(bottom, block.call.groups, smaller);
    for (int u = 0; u < kVectors; ++u) {
      won[u] += larger(zero, one - (top - value[u]) * steepness) * top;
      lost[u] += larger(zero, one - (value[u] - bottom) * steepness);
    }
  }
  for (int u = 0; u < kVectors; ++u) add_to(wins + u * kLanes, won[u]), add_to(losses + u * kLanes, lost[u]);
}

// Takes level number `level`, counted from 0, through the steps of a tile.
void advance(const Block& block, const PathTile& tile, int64_t level, double* state) {
  const int32_t* places = block.places + level * kWidth;
  const float* gains = block.gains + level * kWidth;
  for (int64_t t = 0; t < tile.steps; ++t)
    for (int64_t q = 0; q < kWidth; q += kLanes)
      store(tile.path + t * kWidth + q, pick(tile.responses + t * kWidth, places + q) * load(gains + q));
  for (int64_t q = 0; q < kWidth; q += kPanel) {
    Wide value[kColumns], power[kColumns];
    for (int v = 0; v < kColumns; ++v) {
      value[v] = load(state + q + v * kWideLanes);
      power[v] = load(block.powers + (level + 1) * kWidth + q + v * kWideLanes);
    }
    for (int64_t t = 0; t < tile.steps; ++t)
      for (int v = 0; v < kColumns; ++v) {
        const int64_t place = t * kWidth + q + v * kWideLanes;
        const Wide faded = power[v] * value[v], below = level > 0 ? load(tile.faded + place) : fill(1.0);
        value[v] = faded + below * load_wide(tile.path + place);
        store(tile.faded + place, faded);
        store_wide(tile.path + place, value[v]);
      }
    for (int v = 0; v < kColumns; ++v) store(state + q + v * kWideLanes, value[v]);
  }
}

void Pools::add_level(const Block& block, const PathTile& tile, int64_t level) {
  advance(block, tile, level, state + level * kWidth);
  const Values steepness = fill(static_cast<float>(block.call.steepness));
  for (int64_t q = 0; q < kWidth; q += kLanes) {
    Values share_sum = {}, squares = {};
    for (int64_t t = 0; t < tile.steps; ++t) {
      const Values value = load(tile.path + t * kWidth + q);
      if (level > 0) share_sum += ramp_of(value, Values{}, steepness);
      squares += value * value;
    }
    add_to(level_share + level * kWidth + q, share_sum), add_to(energy + level * kWidth + q, squares);
  }
}

// NaN of a convolution reaches all rivals, whose extremes may have missed it.
void Pools::write(const seq2tens_pooled_blocks& call, int64_t steps, float* out) const {
  const double count = static_cast<double>(steps);
  double missing[4] = {};
  for (int64_t k = 0; k < kWidth; ++k) missing[k % call.groups] += share[k] - share[k];
  for (int64_t k = 0; k < kWidth; ++k) {
    out[k] = static_cast<float>(share[k] / count);
    out[kWidth + k] = longest[k] / static_cast<float>(steps);
    out[2 * kWidth + k] = static_cast<float>(changes[k] / count);
    out[3 * kWidth + k] = static_cast<float>(wins[k] / count + missing[k % call.groups]);
    out[4 * kWidth + k] = static_cast<float>(losses[k] / count + missing[k % call.groups]);
  }
  const int64_t above = (call.order - 1) * kWidth;
  out += kPools * kWidth;
  for (int64_t k = 0; k < above; ++k) out[k] = static_cast<float>(level_share[kWidth + k] / count);
  for (int64_t k = 0; k < call.order * kWidth; ++k) out[above + k] = static_cast<float>(energy[k] / count);
}

void pool_sequence(const Block& block, int64_t sequence, double* x, PathTile tile) {
  const seq2tens_pooled_blocks& call = block.call;
  const int64_t steps = std::min(call.lengths[sequence], call.length);
  Frame frame;
  Pools pools(call.order, frame);
  block.read(sequence, steps, x);
  for (int64_t begin = 0; begin < steps; begin += kTile) {
    tile.steps = std::min(kTile, steps - begin);
    convolve(block, x + begin * call.chosen, tile);
    for (int64_t q = 0; q < kWidth; q += 2 * kLanes) pools.add_ramps(block, tile, q, begin == 0);
    pools.add_contest(block, tile);
    for (int64_t level = 0; level < call.order; ++level) pools.add_level(block, tile, level);
  }
  const int64_t row = (kPools + 2 * call.order - 1) * kWidth;
  pools.write(call, steps, call.out + (sequence * call.blocks + block.index) * row);
}

}  // namespace
}  // namespace pooling_detail

void pool_blocks(const seq2tens_pooled_blocks& call) {
  using namespace pooling_detail;
  constexpr int64_t kWorthATask = worth_a_task(20000);  // about as many nanoseconds
  const int64_t per_block = call.batch * call.length * (call.taps * call.chosen + 50) / kWorthATask;
  const int64_t slices = std::max<int64_t>(1, std::min({call.batch, per_block / 4, int64_t{16}}));
  for_each_task(call.blocks * slices, threads_worth(call.blocks * per_block, call.threads), [&](int64_t task) {
    Frame frame;
    const Block block(call, task / slices, frame);
    const Range sequences(call.batch, task % slices, slices);
    double* x = frame.take<double>(block.room());
    const PathTile tile{0, frame.take<float>(kTile * kWidth), frame.take<float>(kTile * kWidth),
                    frame.take<double>(kTile * kWidth)};
    for (int64_t i = sequences.begin; i < sequences.end; ++i) pool_sequence(block, i, x, tile);
  });
}

}  // namespace SEQ2TENS_ISA
}  // namespace seq2tens
