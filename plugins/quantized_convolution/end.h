/* SPDX-License-Identifier: Apache-2.0
 *
 * What becomes of a convolution's sums on AVX-512, whatever made them: factors of lanes,
 * and the node's scales, bounds and second input.
 */
#ifndef PLUGINS_QUANTIZED_CONVOLUTION_END_H
#define PLUGINS_QUANTIZED_CONVOLUTION_END_H

#include "plugins/common/quantized/quantized.h"

enum { VNNI_VECTORS = 4, VNNI_LANES = 16, VNNI_FILTERS = VNNI_VECTORS * VNNI_LANES };

/* between*steps + (addend*byte + rest), by two FMAs: an output's quotient. is_exact: it
 * rounds to the definition's byte for every step and byte that there are. */
struct vnni_join {
    float between, addend, rest;
    int32_t is_exact;
};

/* What becomes of sums, lane by lane: a lane is a filter, or none, whose factor is 0. */
struct vnni_lanes {
    const int32_t *correction; /* -zero*sum of weights */
    const float *factor, *bias;
    int32_t multiplies; /* they allow quotients by products */
    float reach;        /* no scaled sum is larger */
    int32_t is_short;   /* quotients by all scales are two products */
};

/* From FP32 to whole numbers of a scale: bounds of the quotient, before the zero is
 * added; rest: what the reciprocal rounded lacks. */
struct vnni_step {
    float scale, reciprocal, rest, low, high;
};

/* What becomes of sums. */
struct vnni_end {
    const strata_quantized_convolution *params;
    struct vnni_step between, out; /* the last one's bounds are the activation's, too */
    float scale_addend, slope;
    int32_t zero, zero_addend, addend_flip;
    int32_t has_addend, has_between, has_slope, to_bytes;
    int32_t multiplies; /* all scales are such that quotients may be products */
    int32_t packs; /* quotients fit in 32 bits, and all that cuts them is saturation */
};

/* Where sums of neighbouring pixels go, by up to 64 filters. */
struct vnni_outputs {
    const struct vnni_end *end;
    const struct vnni_lanes *lanes;
    const struct vnni_join *join;
    int64_t filters;       /* of a pixel */
    int64_t at;            /* first output element: pixels are `filters` apart */
    int64_t filter;        /* first one, a multiple of 64 */
    const uint8_t *addend; /* or NULL */
    void *out;
};

/* Whether the processor has what all of this is written for. */
int vnni_is_there(void);

/* Memory of strata.pack for so many elements. */
int vnni_allocate(const strata_node *n, size_t count, size_t size, void **out);

/* The filter of a lane, or -1. */
typedef int64_t vnni_filter_of(const void *user, int64_t lane);

/* In setup: `lanes` of them. depth: of a sum's products; flip: what is added to the input
 * beside its own zero. */
int vnni_make_lanes(const strata_node *n, size_t lanes, int64_t depth, int32_t flip,
                    vnni_filter_of *filter_of, const void *user, struct vnni_lanes *out);

/* vnni_join.c, in setup: of a node that rounds before it joins a second input. */
struct vnni_join vnni_find_join(const strata_node *n);

/* Weights as they are multiplied: [block][row][word][vector][16 filters][4]. A row is
 * `taps/rows` of the kernel's by all channels, and so many words of four bytes, past its
 * end 0; a block has so many vectors of filters, the last one as many as are needed. */
struct vnni_packing {
    int64_t filters, channels, taps, rows, words, vectors;
};
void vnni_pack(const struct vnni_packing *p, const int8_t *weight, int8_t *to);

struct vnni_end vnni_end_of(const strata_run *r, const struct vnni_lanes *lanes);

/* finish.c; sums: [pixel][vector][16], of 64 bytes' alignment. */
typedef void vnni_finish_fn(const struct vnni_outputs *t, const int32_t *sums,
                            int pixels);
vnni_finish_fn vnni_finish_1, vnni_finish_2, vnni_finish_3, vnni_finish_4;

static inline void vnni_finish(const struct vnni_outputs *t, const int32_t *sums,
                               int pixels, int vectors)
{
    if (vectors == 1)
        vnni_finish_1(t, sums, pixels);
    else if (vectors == 2)
        vnni_finish_2(t, sums, pixels);
    else if (vectors == 3)
        vnni_finish_3(t, sums, pixels);
    else
        vnni_finish_4(t, sums, pixels);
}

#endif /* PLUGINS_QUANTIZED_CONVOLUTION_END_H */
