/* SPDX-License-Identifier: Apache-2.0
 *
 * Operators with a window: convolutions and pooling.
 */
#include "network/import/map.h"

#include <string.h>

#include "core/alloc.h"

#define WINDOW "kernel_shape=kernel,strides=stride,pads=pad,dilations=dilation"

static void finish_window(struct mapping *m)
{
    static const char *const modes[][2] = {
        {"VALID", "valid"}, {"SAME_UPPER", "same_upper"}, {"SAME_LOWER", "same_lower"}};
    const char *mode = node_text(m->node, "auto_pad", "NOTSET");
    for (size_t i = 0; i < ARRAY_LENGTH(modes); i++)
        if (strcmp(mode, modes[i][0]) == 0)
            section_word(m->g, m->s, "pad_mode", modes[i][1]);
}

static const struct map_rule rules[] = {
    {.op = "Conv",
     .layer = "Convolution",
     .ports = "xww",
     .names = WINDOW ",group=groups",
     .finish = finish_window},
    {.op = "MaxPool",
     .layer = "Pooling",
     .fixed = "kind=max",
     .ports = "x",
     .names = WINDOW ",ceil_mode=ceil_mode?",
     .finish = finish_window},
    {.op = "AveragePool",
     .layer = "Pooling",
     .fixed = "kind=average",
     .ports = "x",
     .names = WINDOW ",ceil_mode=ceil_mode?,count_include_pad=count_include_pad?",
     .finish = finish_window},
    {.op = "GlobalAveragePool",
     .layer = "Pooling",
     .fixed = "kind=average,global=yes",
     .ports = "x"},
};

const struct map_table map_window = {"Windows", rules, ARRAY_LENGTH(rules)};
