/* SPDX-License-Identifier: Apache-2.0
 *
 * What of a network is quantised: layers that compute with int8 (or e4m3, of which the
 * same is true), whose weights are int8 and whose input is; layers between them that
 * carry int8 from input to output with one scale; and the tensors that therefore become
 * int8 and floats again.
 */
#ifndef CALIBRATE_SCHEME_H
#define CALIBRATE_SCHEME_H

#include "calibrate/method/method.h"
#include "network/network.h"

/* A type of layers with a constant operand that can be int8. */
struct computes {
    const char *type, *weight, *bias; /* full name; names of weights */
    int channel_dim;                  /* of the output; negative counts from the end */
    bool products;                    /* of matrices: they can be e4m3 */
    /* The weight's elements as [outer][channels][inner], each channel with a scale. */
    void (*order)(const struct network_layer *layer, const int64_t *dims, int rank,
                  int64_t order[3]);
};
enum { ORDER_OUTER, ORDER_CHANNELS, ORDER_INNER };

/* How few bits weights alone become. */
struct weight_form {
    int bits;      /* 8 or 4 */
    int64_t group; /* values along the depth of a product that share a scale; 0: all */
};

struct scheme {
    const strata_network *net;
    const struct quant_type *type;    /* what is said to be int8 here */
    const struct computes **computes; /* of each layer that is quantised, else NULL */
    bool *activated; /* of tensors: their one reader is an Activation that becomes int8 */
    bool *reads;     /* of each layer: it reads its inputs' int8, where they have it */
    bool *tensors;   /* that become int8 */
    int *shares;     /* of each tensor: the first that has its scale */
    int *readers;    /* of each tensor: inputs of layers that it is */
    const struct weight_form *weights_only; /* the caller's, or NULL */
    size_t n_layers, n_tensors;             /* quantised */
};

/* With `keep`, layers for which that is true stay as they are. Without quantised layers
 * the scheme is empty, which is no failure. weights_only: no tensor becomes int8, and of
 * layers MatrixMultiply alone gets weights of that form; or NULL. */
int scheme_make(struct scheme *s, const strata_network *net,
                const struct quant_type *type, const bool *keep,
                const struct weight_form *weights_only, strata_error *err);
void scheme_free(struct scheme *s);

/* Whether a layer could be quantised, and how; NULL: no. */
const struct computes *scheme_computes(const strata_network *net,
                                       const struct network_layer *layer);
/* Of its output: the dim along which they are, and how many. */
int scheme_channel_dim(const strata_network *net, const struct network_layer *layer,
                       const struct computes *c);
int64_t scheme_channels(const strata_network *net, const struct network_layer *layer,
                        const struct computes *c);
/* Index of the weight, or of its bias; -1: the type has none. */
int scheme_weight(const struct network_layer *layer, const char *name);

#endif /* CALIBRATE_SCHEME_H */
