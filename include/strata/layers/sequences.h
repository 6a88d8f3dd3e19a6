/* SPDX-License-Identifier: Apache-2.0
 *
 * Layers of sequences: Attention, RotaryEmbedding and RNN.
 * Conventions: strata/layers.h.
 */
#ifndef STRATA_LAYERS_SEQUENCES_H
#define STRATA_LAYERS_SEQUENCES_H

#include <strata/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Attention: y = softmax(softcap(scale*Q*K^T) + mask)*V over the keys that a query sees.
 * Inputs q, k, v, mask, past_k, past_v, lengths (i32 or i64, batch); all but q may be
 * absent. Without k and v, q is packed: batch x sequence x (heads + 2*kv_heads)*dim, the
 * heads of Q, K and V behind each other. Outputs y; with `present` or `cache` then
 * present_k and present_v; with `scores` then those, batch x heads x queries x keys.
 *
 * Without `cache` the keys are those of past_k and behind them those of k, and lengths
 * says how many of them each row of the batch has. With `cache`, past_k and past_v are
 * caches, batch x kv_heads x room x dim, of which each row has taken its lengths' first
 * positions; k and v are written behind them, and present_k and present_v are the caches
 * after that. What would lie outside the room is dropped.
 *
 * Query i is at place i + offset: of the taken positions of a cache, else of lengths less
 * the queries, else of the past, else 0. It sees the keys at places from its own less
 * window_left to its own plus window_right, and with `causal` none behind its own. One
 * that sees no key gives zeros.
 */
enum {
    STRATA_SCORES_NONE = 0,
    STRATA_SCORES_RAW = 1, /* scale*Q*K^T */
    STRATA_SCORES_SOFTCAP = 2,
    STRATA_SCORES_MASKED = 3, /* -infinity where a query does not see a key */
    STRATA_SCORES_SOFTMAX = 4
};
typedef struct strata_attention {
    int64_t heads, kv_heads; /* of 3-D inputs, batch x sequence x heads*dim; kv_heads 0: as
                                heads. heads 0: 4-D, batch x heads x sequence x dim */
    double scale;            /* 0: 1/sqrt(dim) */
    double softcap;          /* c*tanh(score/c); 0: none */
    int64_t window_left, window_right; /* -1: no bound */
    int32_t causal;
    int32_t scores;  /* STRATA_SCORES_* */
    int32_t cache;   /* past_k and past_v are caches */
    int32_t present; /* give present_k and present_v; always with cache */
} strata_attention;

/*
 * RotaryEmbedding: pairs (a, b) of the leading elements of each head turned by the angle
 * position*base^(-2*i/dims) of pair i: (a*cos - b*sin, a*sin + b*cos). Inputs x, positions
 * (i32 or i64: batch x sequence, or batch: of the first of each row, the others follow;
 * absent: from 0), cos and sin (absent, or positions x dims/2, or with positions absent
 * batch x sequence x dims/2); or the first kind of caches as weights cos and sin. A
 * position outside the caches gives zeros.
 */
typedef struct strata_rotary_embedding {
    int64_t heads; /* of 3-D x, batch x sequence x heads*dim; 0: 4-D, as Attention's */
    int64_t dims;  /* elements that turn; 0: all */
    double base;   /* where no caches are given */
    int32_t interleaved; /* pairs are neighbours; else one of either half */
    int32_t reserved;
    int64_t turned; /* heads that turn, the first ones; 0: all. The others stay */
} strata_rotary_embedding;
enum { STRATA_RNN_LSTM = 0, STRATA_RNN_GRU = 1, STRATA_RNN_TANH = 2, STRATA_RNN_RELU = 3 };
enum { STRATA_RNN_FORWARD = 0, STRATA_RNN_REVERSE = 1, STRATA_RNN_BIDIRECTIONAL = 2 };
enum { STRATA_RNN_LINEAR = 0, STRATA_RNN_SKIP = 1 };
enum { STRATA_RNN_SEQUENCE = 0, STRATA_RNN_BATCH = 1 };
/* RNN: L layers of D directions; G gates a unit in ONNX's order (lstm i o f c, gru z r h).
 * Inputs x (T, B, I), lengths (B; i32), h0 and c0 (L*D, B, H), all but x optional; weights
 * w (D, G*H, I) but with SKIP, u ((L-1)*D, G*H, D*H), r (L*D, G*H, H), b (L*D, 2*G*H: of w
 * or u, then of r) and p (L*D, 3*H: i o f), the last two optional; outputs y, hn and, of
 * lstm, cn. */
typedef struct strata_rnn {
    int64_t hidden; /* H; 0: from the weight r */
    int64_t layers;
    double clip; /* bounds what activations take */
    strata_string activations;         /* names, of a direction or of both; empty: op's */
    strata_reals activation_alpha, activation_beta; /* one each, or empty: their own */
    int32_t op, direction, input_mode, layout;
    int32_t reset_after; /* gru: the reset is applied behind the product */
    int32_t coupled;     /* lstm: f = 1 - i */
    int32_t split_directions; /* y is (T, D, B, H), else (T, B, D*H) */
    int32_t reserved;
} strata_rnn;

#ifdef __cplusplus
}
#endif

#endif /* STRATA_LAYERS_SEQUENCES_H */
