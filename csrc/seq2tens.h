/* The interface of the compiled kernels: plain C, one struct of named fields per operation.

   Every field is 8 bytes wide (int64_t, double or a pointer), so a struct has no padding. Arrays are contiguous,
   the last axis fastest, and may begin at any multiple of their element's size. Element type T is float, or double
   where `is_double` is 1. Functions return 0, or 1 if there is not enough memory. */
#pragma once
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define SEQ2TENS_EXPORT __declspec(dllexport)
#else
#define SEQ2TENS_EXPORT __attribute__((visibility("default")))
#endif

/* Chooses an instruction set by name, or the best one if `name` is NULL. Returns its name, or NULL if this processor
   or this library does not support it. */
SEQ2TENS_EXPORT const char* seq2tens_set_isa(const char* name);

/* A digest of the sources that the library was built from. */
SEQ2TENS_EXPORT const char* seq2tens_source_digest(void);

/* The chains of a set of rank-1 functionals, as words: every chain from its first vector to its last. A state is a
   prefix of a word, so words may share states; the first word with a state owns it. The positions of all words are
   numbered consecutively. */
typedef struct seq2tens_words {
  int64_t count;
  int64_t longest;          /* vectors in the longest word */
  int64_t states;
  int64_t components;       /* vectors per functional */
  int64_t levels;
  int64_t shared;           /* 0 if every component occurs at exactly one position */
  const int64_t* start;     /* [count + 1] first position of each word */
  const int64_t* component; /* [positions] the vector */
  const int64_t* state;     /* [positions] the state up to and including this vector */
  const int64_t* owned;     /* [positions] whether this word owns the state */
  const int64_t* level;     /* [positions] the level that outputs the state, -1 if there is none or it is not owned */
} seq2tens_words;

/* Forward pass of the LS2T recursion.
   For a state h with word a_1 … a_m, lift coefficients c and decay d, each valid step does
   h_m <- d^m h_m + sum over j of c_j d^(m-j) h_(m-j) a_(m-j+1) … a_m, with a_k = <vector k, x[i]> + bias k. */
typedef struct seq2tens_ls2t {
  int64_t is_double;
  int64_t threads;
  int64_t batch, length, features, width;
  int64_t reverse;    /* whether time runs backwards */
  int64_t lift_order;
  int64_t block;      /* steps per matrix product, and between two checkpoints */
  const seq2tens_words* words;
  const void* x;              /* [batch, length, features] */
  const void* weight;         /* [components, features, width] */
  const void* bias;           /* [components, width] or NULL */
  const double* coefficients; /* [lift_order], NULL for the plain recursion: one coefficient 1, no decay */
  const double* powers;       /* [longest + 1, width] decay^0, decay^1, …; NULL without decay */
  const uint8_t* mask;        /* [batch, length] which steps are valid; NULL: all of them */
  const void* state;          /* [batch, states, width] before the first step; NULL: zeros */
  void* out;                  /* [batch, length, levels, width] levels along time, or NULL */
  void* final;                /* [batch, states, width] states after the last step, or NULL */
  double* checkpoints;        /* [batch, blocks, states, width] states before each block, or NULL */
  void* products;             /* [batch, length, components, width] the products with all vectors, kept for the
                                 backward pass in an internal order; NULL: it multiplies again. Not used unless
                                 width is a multiple of 16 and batch is at least 4 */
} seq2tens_ls2t;

/* Backward pass of the LS2T recursion. Gradients that are NULL are not computed; all others are overwritten. */
typedef struct seq2tens_ls2t_gradients {
  const seq2tens_ls2t* call;   /* as in the forward pass, with its checkpoints */
  const void* out;             /* [batch, length, levels, width] or NULL */
  const void* final;           /* [batch, states, width] or NULL */
  void* x;                     /* [batch, length, features] */
  void* weight;                /* [components, features, width] */
  void* bias;                  /* [components, width] or NULL */
  double* coefficients;        /* [lift_order] or NULL */
  double* powers;              /* [longest + 1, width] or NULL */
  void* state;                 /* [batch, states, width] or NULL */
} seq2tens_ls2t_gradients;

/* Forward pass of batch normalisation: every channel gets mean 0 and variance 1 over the valid rows, then
   y = (x - mean) / sqrt(variance + eps) weight + bias. Invalid rows become 0. */
typedef struct seq2tens_batch_norm {
  int64_t is_double;
  int64_t threads;
  int64_t rows, channels;
  int64_t inner;          /* adjacent values per channel */
  double eps;
  double momentum;        /* weight of the batch in the running statistics */
  const void* x;          /* [rows, channels, inner] */
  const uint8_t* mask;    /* [rows] which rows are valid; NULL: all of them */
  const void* weight;     /* [channels], NULL: 1 */
  const void* bias;       /* [channels], NULL: 0 */
  void* y;                /* [rows, channels, inner] */
  void* mean;             /* [channels] of the batch */
  void* variance;         /* [channels] */
  void* running_mean;     /* [channels] updated; if NULL, neither running statistic is */
  void* running_variance; /* [channels] */
} seq2tens_batch_norm;

/* Backward pass of batch normalisation. Gradients that are NULL are not computed. */
typedef struct seq2tens_batch_norm_gradients {
  const seq2tens_batch_norm* call; /* after the forward pass; y is not read */
  const void* y;                   /* [rows, channels, inner] */
  void* x;                         /* [rows, channels, inner], may be the array of y */
  void* weight;                    /* [channels] */
  void* bias;                      /* [channels] */
} seq2tens_batch_norm_gradients;

/* Forward pass of convolution over time, without padding: one step for each position where the kernel fits. */
typedef struct seq2tens_convolution {
  int64_t is_double;
  int64_t threads;
  int64_t batch, length, in_features, out_features;
  int64_t kernel;        /* steps that it covers, at most `before + length + after` */
  int64_t before, after; /* zeros that precede and follow each sequence */
  const uint8_t* mask;   /* [batch, length] which steps are valid, the others count as zeros; NULL: all of them */
  const void* x;         /* [batch, length, in_features] */
  const void* weight;    /* [out_features, in_features, kernel] */
  const void* bias;      /* [out_features] or NULL */
  void* packed;          /* [out_features rounded up to a multiple of 32, in_features, kernel] or NULL: `weight` in an
                         internal order. convolution_pack writes it, the forward pass reads it instead of `weight` */
  void* y;               /* [batch, before + length + after - kernel + 1, out_features] */
} seq2tens_convolution;

/* Backward pass of convolution. The gradients of x and bias are not computed if NULL. */
typedef struct seq2tens_convolution_gradients {
  const seq2tens_convolution* call; /* as in the forward pass; y and bias are not read */
  const void* y;                    /* [batch, before + length + after - kernel + 1, out_features] */
  void* x;                          /* [batch, length, in_features] */
  void* weight;                     /* [out_features, in_features, kernel] */
  void* bias;                       /* [out_features] */
} seq2tens_convolution_gradients;

/* The difference of each step and the step before it or, with `reverse`, the step after it; beyond the ends of a
   sequence there are zeros. The two directions are adjoint to each other. */
typedef struct seq2tens_difference {
  int64_t is_double;
  int64_t threads;
  int64_t batch, length, channels;
  int64_t reverse;
  const void* x; /* [batch, length, channels] */
  void* y;       /* [batch, length, channels], another array than x */
} seq2tens_difference;

/* All subwords of the words of a set of chains. They determine how the values of two adjacent parts of a sequence are
   joined: the value of a word is its value on the left part, plus its value on the right part, plus a product for each
   cut of the word in two. Word 0 is the empty one, whose value is 1; the words of the chains' states come next. */
typedef struct seq2tens_subwords {
  int64_t words;            /* number of words, without the empty one */
  int64_t states;
  int64_t levels;
  const int64_t* order;     /* [words] the words, long ones first */
  const int64_t* length;    /* [words + 1] number of vectors of a word */
  const int64_t* first;     /* [words + 1] its first vector */
  const int64_t* rest;      /* [words + 1] the word without its first vector */
  const int64_t* last;      /* [words + 1] its last vector */
  const int64_t* parent;    /* [words + 1] the word without its last vector */
  const int64_t* output;    /* [levels] the word of each level */
  const int64_t* cut_from;  /* [words + 2] index of the first cut of each word */
  const int64_t* cut_left;  /* [cuts] the left part of a cut word */
  const int64_t* cut_right; /* [cuts] the right part of a cut word */
} seq2tens_subwords;

/* The levels of all windows of `window` steps that begin at steps 0, stride, … and lie within their sequence. */
typedef struct seq2tens_windows {
  int64_t is_double;
  int64_t threads;
  int64_t batch, length, features, components, width;
  int64_t window, stride;
  int64_t lift_order;
  const seq2tens_subwords* subwords;
  const void* x;              /* [batch, length, features] */
  const void* weight;         /* [components, features, width] */
  const void* bias;           /* [components, width] or NULL */
  const double* coefficients; /* [lift_order], NULL for the plain recursion: one coefficient 1 */
  const uint8_t* mask;        /* [batch, length] which steps are valid; NULL: all of them */
  void* out;                  /* [batch, windows, levels, width] */
} seq2tens_windows;

/* The levels of intervals. Each consists of a row of `ends`, two rows of `stretches` and a row of `beginnings`, in this
   order in time. */
typedef struct seq2tens_intervals {
  int64_t is_double;
  int64_t threads;
  int64_t count, width;
  int64_t nothing;          /* the row of `stretches` that stands for an empty stretch */
  const seq2tens_subwords* subwords;
  const void* ends;         /* [rows, states, width] */
  const void* stretches;    /* [rows, words, width] */
  const void* beginnings;   /* [rows, words, width] */
  const int64_t* end;       /* [count] rows of the tables */
  const int64_t* left;      /* [count] */
  const int64_t* right;     /* [count] */
  const int64_t* beginning; /* [count] */
  void* out;                /* [count, levels, width] */
} seq2tens_intervals;

/* Blocks of 32 dilated convolutions and of 32 functionals for each level on top of them, pooled over the valid steps of
   every sequence. The convolutions are centred at each step; before and after a sequence there are zeros. Level m of a
   functional with decay d does h_m <- d^m h_m + d^(m-1) h_(m-1) gain r, with h_0 = 1 and the response r of the
   convolution that it picks for this level.
   A comparison with a threshold is a ramp from 0 to 1. Of the convolutions the pools are: the mean of the ramp around
   the threshold; the maximum of r_i = ramp_i (r_(i-1) + 1) and the sum of the absolute changes of the ramp, both
   divided by the number of steps; and of a contest in groups, of which convolution k is in group k mod `groups`, the
   mean of the ramp below the highest times the highest, and that of the ramp above the lowest. Of the levels: the mean
   of the ramp around 0 for those from 2 on, then the mean squares of all. */
typedef struct seq2tens_pooled_blocks {
  int64_t threads;
  int64_t batch, length, channels;
  int64_t blocks;
  int64_t taps;              /* steps that a convolution reads, `dilation` apart */
  int64_t chosen;            /* channels that it reads */
  int64_t order;
  int64_t groups;            /* 1, 2 or 4 */
  double steepness;          /* slope of the ramp around a threshold */
  double contest_steepness;  /* slope of the ramps of contests */
  const float* paths;        /* [sources, batch, length, channels] */
  const int64_t* lengths;    /* [batch] number of valid steps, at least 1 */
  const int64_t* source;     /* [blocks] the path that a block reads */
  const int64_t* channel;    /* [blocks, chosen] */
  const int64_t* dilation;   /* [blocks] */
  const float* weight;       /* [blocks, taps, chosen, 32] */
  const int64_t* picks;      /* [blocks, order, 32] */
  const float* gains;        /* [blocks, order, 32] */
  const float* decay;        /* [blocks, 32] */
  const float* threshold;    /* [blocks, 32] */
  float* out;                /* [batch, blocks, 5 + order - 1 + order, 32] */
} seq2tens_pooled_blocks;

/* Forward pass of the full map of a power lift: all coordinates, up to an order, of the product over time of
   1 + c_1 x + c_2 x⊗x + …, level 0 first. With the increments of a path and c_j = 1/j! this is its signature. */
typedef struct seq2tens_full_map {
  int64_t is_double;
  int64_t threads;
  int64_t batch, points, dim, order;
  int64_t lift_order;
  int64_t increments;         /* whether steps are the differences of consecutive points */
  int64_t sequences;          /* whether to write the result after every step */
  int64_t lanes;              /* sequences that advance side by side: 1, or 8 unless `sequences` */
  int64_t block;              /* steps between two checkpoints */
  const void* x;              /* [batch, points, dim] */
  const double* coefficients; /* [lift_order] */
  void* out;                  /* [batch, coordinates], or [batch, steps, coordinates] with `sequences` */
  double* checkpoints;        /* [groups of lanes, blocks, coordinates below the top level, lanes] states before each
                                 block, for the backward pass, or NULL */
} seq2tens_full_map;

/* Backward pass of the full map. Gradients are overwritten; that of the coefficients is not computed if NULL. */
typedef struct seq2tens_full_map_gradients {
  const seq2tens_full_map* call; /* as in the forward pass, with its checkpoints; `out` is not read */
  const void* out;               /* in the shape of the result */
  void* x;                       /* [batch, points, dim] */
  double* coefficients;          /* [lift_order] */
} seq2tens_full_map_gradients;

/* All operations, with their names and structs. They are declared and exported from this list. */
#define SEQ2TENS_OPERATIONS(OPERATION)                    \
  OPERATION(ls2t_forward, seq2tens_ls2t)                  \
  OPERATION(ls2t_backward, seq2tens_ls2t_gradients)       \
  OPERATION(batch_norm_forward, seq2tens_batch_norm)      \
  OPERATION(batch_norm_backward, seq2tens_batch_norm_gradients) \
  OPERATION(convolution_pack, seq2tens_convolution)       \
  OPERATION(convolution_forward, seq2tens_convolution)    \
  OPERATION(convolution_backward, seq2tens_convolution_gradients) \
  OPERATION(difference_steps, seq2tens_difference)        \
  OPERATION(slide_windows, seq2tens_windows)              \
  OPERATION(join_intervals, seq2tens_intervals)           \
  OPERATION(pool_blocks, seq2tens_pooled_blocks)          \
  OPERATION(full_map_forward, seq2tens_full_map)          \
  OPERATION(full_map_backward, seq2tens_full_map_gradients)

#define SEQ2TENS_DECLARE(name, call) SEQ2TENS_EXPORT int64_t seq2tens_##name(const call*);
SEQ2TENS_OPERATIONS(SEQ2TENS_DECLARE)
#undef SEQ2TENS_DECLARE

#ifdef __cplusplus
}
#endif
