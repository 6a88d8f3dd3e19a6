/* SPDX-License-Identifier: Apache-2.0
 *
 * Every struct that plugins and hosts exchange, in the signature of one function: what
 * abidw describes, see tests/check-abi.sh.
 */
#include <strata/layers.h>

struct surface {
    strata_module module;
    strata_layer layer;
    strata_extends extends;
    strata_impl impl;
    strata_attr attr;
    strata_weight weight;
    strata_row row;
    strata_node node;
    strata_run run;
    strata_host host;
    strata_epilogue epilogue;
    strata_reference reference;
    strata_reference_typed reference_typed;
    strata_pack pack;
    strata_note note;
    strata_convolution convolution;
    strata_fully_connected fully_connected;
    strata_activation activation;
    strata_pooling pooling;
    strata_scale scale;
    strata_elementwise elementwise;
    strata_softmax softmax;
    strata_concatenation concatenation;
    strata_slice slice;
    strata_padding padding;
    strata_shuffle shuffle;
    strata_resize resize;
    strata_constant constant;
};

STRATA_EXPORT strata_entry strata_surface(const struct surface *s);
strata_entry strata_surface(const struct surface *s)
{
    return s ? NULL : NULL;
}
